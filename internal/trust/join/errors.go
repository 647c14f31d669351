package join

import "errors"

// Errors that trying again does not heal.
var (
	// ErrTokenRefused says that the token is none of the cluster's today.
	ErrTokenRefused = errors.New(
		"the server refuses the join token: it has expired or was deleted: make another with 'setpoint token create'",
	)
	// ErrServerTokenRefused says that the token lets no servers in today.
	ErrServerTokenRefused = errors.New("the server refuses the join token: it has expired, was deleted, or lets in no servers: " +
		"make another with 'setpoint token create --for server'")
	// ErrOlderServer says that a server does not know how servers join.
	ErrOlderServer = errors.New("this server is of an older release, which lets no server in by a token: upgrade it first, or join through one " +
		"that is newer")
	// ErrNotForServers and ErrNotForAgents say that a token is of the other kind.
	ErrNotForServers = errors.New("this join token lets in agents, and no servers: make one with 'setpoint token create --for server'")
	ErrNotForAgents  = errors.New("this join token lets in servers, and no agents: make one with 'setpoint token create'")
	// ErrNoMoreServers says that the token has let in as many servers as it may.
	ErrNoMoreServers = errors.New("the join token has let in as many servers as it may")
	// ErrLetInBefore says that the token has let in this server, too long ago to be asked again.
	ErrLetInBefore = errors.New("the join token has let in this server before")
	// ErrServerNameTaken says that there is a server or a node of that name.
	ErrServerNameTaken = errors.New("the name is taken")
	// ErrRefused says that the server refuses the request; its message follows.
	ErrRefused = errors.New("the server refuses the request")
	// ErrNameTaken says that a node of that name exists, with another key.
	ErrNameTaken = errors.New("there is a node of that name, and this machine does not hold its key")
	// ErrNoMoreNames says that the token has let in as many nodes as it may.
	ErrNoMoreNames = errors.New("the join token has let in as many nodes as it may")
	// ErrWrongCluster says that a server's authority is not the one in the token.
	ErrWrongCluster = errors.New(
		"the server's certificate authority is not the one in the join token: this server belongs to another cluster, or somebody is in between",
	)
	// ErrClocksDiffer says that a certificate is not valid at this machine's time.
	ErrClocksDiffer = errors.New("the certificate is not valid at this machine's time")
	// ErrNoToken says that a machine that has never joined has no token to join with.
	ErrNoToken = errors.New("--token-file is needed to join for the first time: 'setpoint token create' prints a token")
	// ErrCertificateEnded says that what the machine holds lets it in no more, and that it has no token.
	ErrCertificateEnded = errors.New("the certificate in the data directory has ended, or is of another name: " +
		"give --token-file a token of 'setpoint token create'")
	// ErrNoServers says that no server was given to join.
	ErrNoServers = errors.New("no servers to join")
)
