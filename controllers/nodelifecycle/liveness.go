package nodelifecycle

import "time"

// SessionState is what the servers know of a node's control session.
type SessionState int

const (
	// SessionUnknown: the node never had a session, a stock kubelet for
	// instance; its Lease decides.
	SessionUnknown SessionState = iota
	// SessionAlive: pings arrive.
	SessionAlive
	// SessionLost: no ping for 15 s, or broken off without goodbye and not back
	// within 3 s.
	SessionLost
	// SessionClosedCleanly: the agent said goodbye before it stopped.
	SessionClosedCleanly
	// SessionQuiet: alive, but a ping is overdue; it counts as lost if gossip holds
	// the node for dead.
	SessionQuiet
)

// GossipState is the gossip pool's view of a node.
type GossipState int

const (
	// GossipNotMember: the pool never had the node.
	GossipNotMember GossipState = iota
	// GossipAlive: no majority of the servers considers the node dead.
	GossipAlive
	// GossipDead: a majority of the servers, at least two of three, considers it dead.
	GossipDead
)

// Signal is what sessions and gossip report about one node.
type Signal struct {
	Session SessionState
	// SessionSince is when Session last changed; of one that is lost after it was
	// quiet, when it fell quiet.
	SessionSince time.Time
	Gossip       GossipState
	// GossipSince is when Gossip last changed.
	GossipSince time.Time
}

// Liveness is the controller's view of sessions and gossip, filled by the
// wiring. Both methods may be called from any goroutine.
type Liveness interface {
	// Node returns the present signal of a node; the zero Signal for a node it
	// never heard of.
	Node(name string) Signal
	// Changes delivers names of nodes whose signal changed; "" means that any
	// may have. It must not be closed while the controller runs. One reader.
	Changes() <-chan string
}
