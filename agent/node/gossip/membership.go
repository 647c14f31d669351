package gossip

import "time"

// LeaveTimeout bounds how long a member that stops takes to say so.
const LeaveTimeout = 2 * time.Second

// Membership is where a member of the pool of nodes and servers is.
type Membership struct {
	// BindAddress is "ip:port", tcp and udp. If the port is taken, a free one is used.
	BindAddress string
	// AdvertiseIP is where others reach a member that is bound to all addresses; empty: derived.
	AdvertiseIP string
}

// Join becomes a member with the rest of the config, if m is not nil. Gossip is only a hint:
// without it, when nil is returned, sessions go on to judge nodes.
func (m *Membership) Join(config Config) *Pool {
	if m == nil {
		return nil
	}
	config.BindAddr = m.BindAddress
	if BindsAll(m.BindAddress) {
		config.AdvertiseIP = m.AdvertiseIP
	}
	pool, err := Join(config)
	if err != nil {
		config.Logger.Warn("gossip is off: nodes are judged by sessions alone", "address", m.BindAddress, "err", err)
		return nil
	}
	return pool
}
