package session

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// nodesLimit bounds the sessions that one server remembers.
	nodesLimit = 10_000
	// sweepInterval is how often deadlines are looked at.
	sweepInterval = 250 * time.Millisecond
)

// Opinion is what one server's gossip holds of a node.
type Opinion struct {
	Node string
	Dead bool
}

// View is one server's gossip, sent along with its sessions.
type View struct {
	Opinions []Opinion
	// Suspended says that the server distrusts its own gossip.
	Suspended bool
	// Address is the "ip:port" where the server gossips; empty if it does not.
	Address string
}

// Servers is the membership of the control plane in the eyes of one server.
type Servers struct {
	// Peers are all servers but this one.
	Peers []Peer
	// Votes says that this server counts for a majority, as its peers' Voter does.
	Votes bool
}

// Table is what one server knows of all sessions: its own at first hand, those
// of its peers by their digests. Safe for concurrent use.
type Table struct {
	server   string
	instance string
	changed  func(node string)

	mu        sync.Mutex
	own       map[string]record
	peers     map[string]*peer
	votes     bool
	regrouped chan struct{} // closed and replaced when the peers change
	published map[string]Entry
	sequence  uint64
	news      chan struct{} // closed and replaced when the own digest changes
	pings     map[string]time.Time
	// filled gets a value when there is something to sweep again.
	filled chan struct{}
}

// peer is another server, and what it has told.
type peer struct {
	Peer
	removed  bool // no member any more; its sessions are remembered until they ended
	instance string
	sequence uint64
	heard    time.Time // zero: never
	records  map[string]record
	view     View
}

// NewTable makes the table of a server that is alone until SetServers. changed is
// called with the name of each node whose Entry changed; it must not block.
func NewTable(server string, changed func(node string)) *Table {
	return &Table{
		server: server, instance: uuid.NewString(), changed: changed, votes: true,
		own: map[string]record{}, peers: map[string]*peer{}, published: map[string]Entry{},
		pings: map[string]time.Time{}, news: make(chan struct{}), regrouped: make(chan struct{}),
		filled: make(chan struct{}, 1),
	}
}

// Run watches deadlines until ctx ends. While there are no sessions to remember, it sleeps without a timer.
func (t *Table) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if t.sweep(time.Now()) {
			pause(ctx, sweepInterval, nil)
			continue
		}
		select {
		case <-ctx.Done():
		case <-t.filled:
		}
	}
	return nil
}

// fill wakes Run: there may be something to sweep.
func (t *Table) fill() {
	select {
	case t.filled <- struct{}{}:
	default: // it wakes already
	}
}

// Node returns the state of a node's session.
func (t *Table) Node(name string) Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.published[name]
}

// Entries returns the states of all nodes.
func (t *Table) Entries() map[string]Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.published)
}

// Views returns the gossip of the voting peers that have been heard lately, by name.
func (t *Table) Views() map[string]View {
	t.mu.Lock()
	defer t.mu.Unlock()
	views := map[string]View{}
	for name, p := range t.peers {
		if p.Voter && !p.heard.IsZero() && time.Since(p.heard) < silentLimit {
			views[name] = p.view
		}
	}
	return views
}

// Tell makes the exchange send a digest now, because the View changed.
func (t *Table) Tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell()
}

func (t *Table) tell() {
	close(t.news)
	t.news = make(chan struct{})
}

// newsAfter is closed when the own digest has changed.
func (t *Table) newsAfter() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.news
}

// open notes a new session of a node with this server.
func (t *Table) open(node, instance string, counter uint64) (record, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if _, known := t.own[node]; !known && len(t.own) >= nodesLimit {
		return record{}, ErrTooMany
	}
	r := record{instance: instance, counter: counter, phase: open, opened: now, changed: now}
	t.own[node], t.pings[node] = r, now
	t.publish(node, now)
	t.tell()
	t.fill()
	return r, nil
}

// ping notes a sign of life; false when the session has been superseded or ended.
func (t *Table) ping(node string, r record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isCurrent(node, r) {
		return false
	}
	now := time.Now()
	t.pings[node] = now
	t.setQuiet(node, time.Time{}, now)
	return true
}

// setQuiet notes since when a session of this server is overdue, zero: it is not.
func (t *Table) setQuiet(node string, since, now time.Time) {
	r := t.own[node]
	if r.quiet.IsZero() == since.IsZero() {
		return
	}
	r.quiet = since
	t.own[node] = r
	t.publish(node, now)
	t.tell()
}

// end notes how a session ended, unless a newer one has begun.
func (t *Table) end(node string, r record, how phase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.isCurrent(node, r) {
		return
	}
	if how == broken && now.Sub(t.pings[node]) >= pingGrace {
		how = expired // the reader's own deadline woke before the sweep
	}
	t.endLocked(node, how, now)
}

func (t *Table) endLocked(node string, how phase, now time.Time) {
	r := t.own[node]
	r.phase, r.changed = how, now
	t.own[node] = r
	delete(t.pings, node)
	t.publish(node, now)
	t.tell()
}

func (t *Table) isCurrent(node string, r record) bool {
	have := t.own[node]
	return have.phase == open && have.instance == r.instance && have.counter == r.counter
}

// sweep finds what has changed by time alone, and forgets what is old. It reports whether anything is left that time can change.
func (t *Table) sweep(now time.Time) (left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for node, last := range t.pings {
		switch silent := now.Sub(last); {
		case silent >= pingGrace:
			t.endLocked(node, expired, now)
		case silent >= quietLimit:
			t.setQuiet(node, last.Add(quietLimit), now)
		}
	}
	forget(t.own, now)
	for name, p := range t.peers {
		p.breakSilent(now)
		forget(p.records, now)
		if p.removed && len(p.records) == 0 {
			delete(t.peers, name)
		}
		left = left || len(p.records) > 0
	}
	for node := range t.published {
		t.publish(node, now)
	}
	return left || len(t.own) > 0 || len(t.published) > 0
}

func forget(records map[string]record, now time.Time) {
	maps.DeleteFunc(records, func(_ string, r record) bool {
		return r.phase != open && now.Sub(r.changed) > memory
	})
}

// breakSilent has the sessions of a peer that is not heard any more fall quiet,
// then break. If it comes back, its next digest says what is true.
func (p *peer) breakSilent(now time.Time) {
	if p.heard.IsZero() || now.Sub(p.heard) < quietLimit {
		return
	}
	for node, r := range p.records {
		if r.phase != open {
			continue
		}
		if r.quiet.IsZero() {
			r.quiet = p.heard.Add(quietLimit)
		}
		if now.Sub(p.heard) >= silentLimit {
			r.phase, r.changed = broken, p.heard.Add(silentLimit)
		}
		p.records[node] = r
	}
}

// publish judges a node again and reports a change.
func (t *Table) publish(node string, now time.Time) {
	entry, was := judge(t.recordsOf(node), now), t.published[node]
	if entry.State == was.State {
		return
	}
	if entry.State == Unknown {
		delete(t.published, node)
	} else {
		t.published[node] = entry
	}
	if t.changed != nil {
		t.changed(node)
	}
}

func (t *Table) recordsOf(node string) []record {
	records := make([]record, 0, len(t.peers)+1)
	if r, ok := t.own[node]; ok {
		records = append(records, r)
	}
	for _, p := range t.peers {
		if r, ok := p.records[node]; ok {
			records = append(records, r)
		}
	}
	return records
}
