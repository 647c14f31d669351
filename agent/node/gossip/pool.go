package gossip

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// rejoinInterval is how often the seeds are joined again.
	rejoinInterval = 30 * time.Second
	// aloneInterval is the same while no other server is seen.
	aloneInterval = 5 * time.Second
	// deadMemory is how long the dead are remembered.
	deadMemory = time.Hour
	// changesLimit bounds the changes that wait for a reader.
	changesLimit = 1024
)

// State is what the pool holds of a member.
type State int

const (
	// NotMember: never seen, or left in good order.
	NotMember State = iota
	// Alive: a member, or only suspected.
	Alive
	// Dead: it answered no probe, and did not refute the suspicion in time.
	Dead
)

// String implements fmt.Stringer.
func (s State) String() string {
	switch s {
	case Alive:
		return "alive"
	case Dead:
		return "dead"
	case NotMember:
	}
	return "left"
}

// Member is one member as this one sees it.
type Member struct {
	Name    string
	Role    Role
	Address string // ip:port
	State   State
	Since   time.Time // when State became what it is
}

// Pool is this process's membership. Safe for concurrent use.
type Pool struct {
	config  Config
	keys    *memberlist.Keyring
	list    *memberlist.Memberlist
	address string // "ip:port" that this member advertises
	changes chan string
	rejoin  chan struct{}

	mu      sync.Mutex
	members map[string]Member // by id, without this one
	leaving map[string]bool   // ids that announced to leave
	left    bool              // this one leaves
}

// Join becomes a member. It returns at once; Run finds the others.
func Join(config Config) (*Pool, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	p := &Pool{
		config:  config,
		changes: make(chan string, changesLimit),
		rejoin:  make(chan struct{}, 1),
		members: map[string]Member{},
		leaving: map[string]bool{},
	}
	var err error
	if p.keys, err = memberlist.NewKeyring(config.Keys, config.Keys[0]); err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	c, err := config.memberlistConfig(p)
	if err != nil {
		return nil, err
	}
	if err := p.listen(c); err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	// The library writes its own node without a lock that readers could take.
	p.address = p.list.LocalNode().Address()
	return p, nil
}

// Run joins the seeds again and again until ctx ends: pools that fell apart do
// not find together by themselves. The member stays until Leave.
func (p *Pool) Run(ctx context.Context) error {
	for {
		p.joinSeeds()
		p.forget(time.Now())
		interval := rejoinInterval
		if !p.seesServer() {
			interval = aloneInterval
		}
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-p.rejoin:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Rejoin has Run join the seeds now, since there are others.
func (p *Pool) Rejoin() {
	select {
	case p.rejoin <- struct{}{}:
	default: // it will anyway
	}
}

func (p *Pool) joinSeeds() {
	if p.config.Seeds == nil {
		return
	}
	self := p.Address()
	seeds := slices.DeleteFunc(slices.Clone(p.config.Seeds()), func(s string) bool { return s == self })
	if len(seeds) == 0 {
		return
	}
	if _, err := p.list.Join(seeds); err != nil {
		p.config.Logger.Debug("no gossip seed joined", "err", err)
	}
}

// Leave tells the others that this member goes in good order, and ends it.
func (p *Pool) Leave(timeout time.Duration) error {
	p.mu.Lock()
	p.left = true
	p.mu.Unlock()
	// The library does not say of a member that it left: announce it. Running out
	// of time means that it was not repeated as often as wanted.
	if err := p.list.UpdateNode(timeout / 2); err != nil {
		p.config.Logger.Debug("gossip goodbye", "err", err)
	}
	err := p.list.Leave(timeout / 2)
	if shutdownErr := p.list.Shutdown(); err == nil {
		err = shutdownErr
	}
	if err != nil {
		return fmt.Errorf("gossip: leave: %w", err)
	}
	return nil
}

// Address is the "ip:port" that this member advertises.
func (p *Pool) Address() string { return p.address }

// Members returns everybody, this member first, the rest by role and name.
func (p *Pool) Members() []Member {
	p.mu.Lock()
	members := slices.Collect(maps.Values(p.members))
	p.mu.Unlock()
	members = slices.DeleteFunc(members, func(m Member) bool { return p.revoked(m.Role, m.Name) != nil })
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(b.Role, a.Role), cmp.Compare(a.Name, b.Name))
	})
	self := Member{Name: p.config.Name, Role: p.config.Role, Address: p.Address(), State: Alive}
	return slices.Insert(members, 0, self)
}

// State returns what this member holds of a node, and since when.
func (p *Pool) State(node string) (State, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[memberID(RoleNode, node)]
	if p.revoked(RoleNode, node) != nil {
		return NotMember, m.Since
	}
	return m.State, m.Since
}

// Changes delivers names of nodes whose State changed; "" means that any may
// have, or a server's. One reader; it is never closed.
func (p *Pool) Changes() <-chan string { return p.changes }

func (p *Pool) seesServer() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m.Role == RoleServer && m.State == Alive {
			return true
		}
	}
	return false
}

func (p *Pool) forget(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.members, func(_ string, m Member) bool {
		return m.State != Alive && now.Sub(m.Since) > deadMemory
	})
}

// memberID is a member's name in the library: a node may be named as a server is.
func memberID(role Role, name string) string { return string(role) + ":" + name }

func memberFrom(n *memberlist.Node, state State) Member {
	role, name, _ := strings.Cut(n.Name, ":")
	return Member{Name: name, Role: Role(role), Address: n.Address(), State: state, Since: time.Now()}
}

// note records a member's state and reports it.
func (p *Pool) note(m Member) {
	id := memberID(m.Role, m.Name)
	if id == memberID(p.config.Role, p.config.Name) {
		return
	}
	p.mu.Lock()
	if m.State == Dead && p.leaving[id] {
		m.State = NotMember
	}
	delete(p.leaving, id)
	p.members[id] = m
	p.mu.Unlock()
	name := m.Name
	if m.Role != RoleNode {
		name = ""
	}
	select {
	case p.changes <- name:
	default: // the reader has as much to look at as there can be
	}
}
