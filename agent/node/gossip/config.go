package gossip

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	keyBytes = 32
	// gossipInterval is how often news is passed on.
	gossipInterval = 200 * time.Millisecond
	// suspicionMult times the probe interval of 1 s is how long a small pool
	// waits for a suspect to speak up.
	suspicionMult = 4
	// deadNodeReclaimTime is when a dead member's name may come from another address.
	deadNodeReclaimTime = 30 * time.Second
	// handoffQueueDepth bounds messages that wait to be handled.
	handoffQueueDepth = 4096
)

// Role tells servers from nodes.
type Role string

// The roles in a pool.
const (
	RoleServer Role = "server"
	RoleNode   Role = "node"
)

// Config is one member.
type Config struct {
	// Name is unique among members of the same Role.
	Name string
	Role Role
	// BindAddr is "ip:port", tcp and udp; no ip: all; port 0, or one that is taken: a free one.
	BindAddr string
	// AdvertiseIP is where others reach this member, at the port of BindAddr; empty:
	// derived from BindAddr.
	AdvertiseIP string
	// Keys encrypt and authenticate, 32 bytes each: the first one encrypts, all decrypt. Pool.UseKeys changes them.
	Keys [][]byte
	// Label keeps apart clusters that share a network.
	Label string
	// Seeds returns "host:port" of servers; names are resolved at each use.
	Seeds func() []string
	// Revoked says that a member was shut out: it does not come in, and what is heard of it does not count. Nil: nobody was.
	Revoked func(role Role, name string) error
	Logger  *slog.Logger
	// Transport replaces sockets in tests.
	Transport memberlist.Transport
}

func (c *Config) validate() error {
	if c.Name == "" || c.Role == "" {
		return ErrNoName
	}
	return validateKeys(c.Keys)
}

// memberlistConfig is the library's configuration for this member.
func (c *Config) memberlistConfig(p *Pool) (*memberlist.Config, error) {
	m := memberlist.DefaultLANConfig()
	m.Name = memberID(c.Role, c.Name)
	m.Label = c.Label
	m.Keyring = p.keys
	m.Transport = c.Transport
	m.EnableCompression = false
	m.GossipInterval = gossipInterval
	m.SuspicionMult = suspicionMult
	m.DeadNodeReclaimTime = deadNodeReclaimTime
	m.HandoffQueueDepth = handoffQueueDepth
	m.Delegate, m.Events, m.Alive = p, p, p
	m.Logger = newLogger(c.Logger)
	var err error
	if m.BindAddr, m.BindPort, err = splitAddress(c.BindAddr); err != nil {
		return nil, err
	}
	m.AdvertiseAddr, m.AdvertisePort = c.AdvertiseIP, m.BindPort
	if m.BindAddr == "" {
		m.BindAddr = net.IPv4zero.String()
	}
	return m, nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%w %q: %w", ErrBadAddress, address, err)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%w %q: %w", ErrBadAddress, address, err)
	}
	return host, int(number), nil
}
