package session

import "errors"

var (
	// ErrNotNode refuses a session to a caller who is no node.
	ErrNotNode = errors.New("only nodes hold sessions: the caller's certificate is not a node's")
	// ErrStopping ends the sessions of a server that stops.
	ErrStopping = errors.New("the server stops: hold the session elsewhere")
	// ErrNoLeader refuses sessions at a server that has no leader.
	ErrNoLeader = errors.New("the server has no leader: hold the session elsewhere")
	// ErrTooMany refuses a session beyond the limit of nodes.
	ErrTooMany = errors.New("too many nodes hold sessions")
	// ErrUnknownPeer refuses a digest from a server that is not a peer.
	ErrUnknownPeer = errors.New("the digest is not from a peer")

	errExpired = errors.New("no ping in time")
	errSilent  = errors.New("the server does not answer")
)
