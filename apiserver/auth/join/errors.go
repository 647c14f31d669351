package join

import "errors"

// Errors that trying again does not heal.
var (
	// ErrTokenRefused says that the server does not know the token.
	ErrTokenRefused = errors.New("the server refuses the join token: copy the text of pki/node.token from a server of this cluster")
	// ErrRefused says that the server refuses the request; its message follows.
	ErrRefused = errors.New("the server refuses the request")
	// ErrWrongCluster says that a server's authority is not the one in the token.
	ErrWrongCluster = errors.New("the server's certificate authority is not the one in the join token: this server belongs to another cluster, or somebody is in between")
	// ErrClocksDiffer says that a certificate is not valid at this machine's time.
	ErrClocksDiffer = errors.New("the certificate is not valid at this machine's time")
	// ErrNoServers says that no server was given to join.
	ErrNoServers = errors.New("no servers to join")
)
