package session

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb"
)

const (
	// ringKeysMax is how many keys of gossip a ring has at most, and ringNameBytesMax how long a label or what a key is called is.
	ringKeysMax      = 8
	ringNameBytesMax = 64
)

// Ring are the keys of the pool of nodes and servers: the first one encrypts, all decrypt. They are secret.
type Ring struct {
	Label string
	Keys  [][]byte
}

// String says how many keys there are: they are printed in no way.
func (r Ring) String() string { return fmt.Sprintf("%s, %d keys", r.Label, len(r.Keys)) }

// GoString is String.
func (r Ring) GoString() string { return r.String() }

// LogValue is String.
func (r Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }

// RingHeld is what a member says of its Ring: the label, and what the keys are called, the one in use first.
type RingHeld struct {
	Label string
	IDs   []string
}

func (h RingHeld) equal(other RingHeld) bool {
	return h.Label == other.Label && slices.Equal(h.IDs, other.IDs)
}

// Reported is what the agent of a node has said last in a session that is open at this server. No IDs: its release cannot replace keys.
type Reported struct {
	Node string
	Held RingHeld
	// Authorities are the hashes of those that it believes, that of its own certificates first. None: its release cannot replace them.
	// Told says that it was told others since it has said that.
	Authorities []string
	Told        bool
	// Garbled says that it has said what no agent says: what it holds is unknown.
	Garbled bool
}

// Reports are those of all sessions that are open at this server, by name. A node may have two for seconds: one broke, and nobody has
// noticed yet.
func (s *Service) Reports() []Reported {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Reported
	for st := range s.held {
		if st.node != "" {
			all = append(all, Reported{Node: st.node, Held: st.ring, Authorities: st.authorities, Told: st.told, Garbled: st.garbled})
		}
	}
	slices.SortFunc(all, func(a, b Reported) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), len(a.Held.IDs)-len(b.Held.IDs))
	})
	return all
}

// note keeps what an agent says of its ring.
func (s *Service) note(st *stream, node string, message *sessionpb.KeepRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.node = node
	st.ring, st.garbled = ringHeldOf(message)
	st.authorities, st.told = message.GetAuthorities(), false
	if authoritiesGarbled(st.authorities) {
		st.authorities, st.garbled = nil, true
	}
}

// ringHeldOf is what a message says; more than any ring has, or longer names, is garbled.
func ringHeldOf(message *sessionpb.KeepRequest) (held RingHeld, garbled bool) {
	held = RingHeld{Label: message.GetGossipLabel(), IDs: message.GetGossipKeyIds()}
	isLong := func(name string) bool { return len(name) > ringNameBytesMax }
	if len(held.IDs) > ringKeysMax || isLong(held.Label) || slices.ContainsFunc(held.IDs, isLong) {
		return RingHeld{}, true
	}
	return held, false
}

// ringFor is the ring that the agent of a stream is to be told: nil if it has it already, cannot follow, or is not to have it.
func (s *Service) ringFor(st *stream) *sessionpb.GossipRing {
	if s.config.Ring == nil {
		return nil
	}
	s.mu.Lock()
	node, held := st.node, st.ring
	s.mu.Unlock()
	if len(held.IDs) == 0 {
		return nil
	}
	ring, named := s.config.Ring(node)
	if ring == nil || named.equal(held) {
		return nil
	}
	return &sessionpb.GossipRing{Label: ring.Label, Keys: ring.Keys}
}

// request is a message of the agent, with what it holds.
func (c *Client) request() *sessionpb.KeepRequest {
	message := &sessionpb.KeepRequest{}
	if c.RingHeld != nil {
		held := c.RingHeld()
		message.GossipLabel, message.GossipKeyIds = held.Label, held.IDs
	}
	if c.AuthoritiesHeld != nil {
		message.Authorities = c.AuthoritiesHeld()
	}
	return message
}

// hearRing takes a ring that the server tells, and reports whether the agent holds another one now.
func (c *Client) hearRing(told *sessionpb.GossipRing) (another bool) {
	if told == nil || c.Ring == nil || c.RingHeld == nil || len(told.GetKeys()) > ringKeysMax || len(told.GetLabel()) > ringNameBytesMax {
		return false
	}
	before := c.RingHeld()
	c.Ring(Ring{Label: told.GetLabel(), Keys: told.GetKeys()})
	return !c.RingHeld().equal(before)
}
