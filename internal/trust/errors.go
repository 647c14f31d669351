package trust

import "errors"

var (
	// ErrNotServer says that the other side of a connection is not a server of the cluster.
	ErrNotServer = errors.New("the certificate of the other side is not a server's (group " + GroupServers + ")")
	// ErrBadPEM says that a file or message holds no PEM block of the expected type.
	ErrBadPEM = errors.New("no PEM block of the expected type")
	// ErrBadServer says that a server's name or endpoint cannot be used.
	ErrBadServer = errors.New("bad server")
	// ErrNoServer says that the folder holds no certificate for the server asked for.
	ErrNoServer = errors.New("no certificate for this server")
	// ErrBadRequest says that a certificate request asks for something it cannot have.
	ErrBadRequest = errors.New("bad certificate request")
)
