package nodelifecycle

import (
	"sync"
	"time"
)

const (
	// evictionInterval is the time between two nodes of a zone that get
	// NoExecute while most of the zone is well: 0.1 nodes/s.
	evictionInterval = 10 * time.Second
	// evictionIntervalSlow is the same while more than unhealthyPercent of the
	// zone is bad: 0.01 nodes/s.
	evictionIntervalSlow = 100 * time.Second
	// unhealthyPercent is the share of bad nodes beyond which a zone's fault is
	// likelier the network's than the nodes'.
	unhealthyPercent = 55
	// massWindow, massMin and massPercent define "many at once": more than
	// max(massMin, massPercent of all nodes) within massWindow.
	massWindow  = 30 * time.Second
	massMin     = 3
	massPercent = 10
	// massFreeze is how long evictions rest after many went at once.
	massFreeze = 60 * time.Second
	// haltedRecheck is when a node is looked at again while evictions rest for
	// no known end.
	haltedRecheck = 5 * time.Second
)

// budget limits how many nodes may lose their pods. It sees every node's last
// judgement; safe for concurrent use.
type budget struct {
	mu     sync.Mutex
	nodes  map[string]standing
	last   map[string]time.Time // last NoExecute by zone
	frozen time.Time            // evictions rest until then
}

// standing is one node's last judgement.
type standing struct {
	zone  string
	bad   bool
	since time.Time // when bad became true
}

func newBudget() *budget {
	return &budget{nodes: map[string]standing{}, last: map[string]time.Time{}}
}

// observe notes a judgement and freezes evictions when many went bad at once.
func (b *budget) observe(node, zone string, bad bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.nodes[node]
	s := standing{zone: zone, bad: bad, since: was.since}
	if bad && !was.bad {
		s.since = now
	}
	b.nodes[node] = s
	if bad && !was.bad && b.vanished(now) > max(massMin, len(b.nodes)*massPercent/100) {
		b.frozen = now.Add(massFreeze)
	}
}

// forget drops a deleted node.
func (b *budget) forget(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.nodes, node)
}

// badSince is when the node went bad; zero when it is not.
func (b *budget) badSince(node string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.nodes[node]; s.bad {
		return s.since
	}
	return time.Time{}
}

// vanished counts the nodes that went bad within massWindow.
func (b *budget) vanished(now time.Time) (n int) {
	for _, s := range b.nodes {
		if s.bad && now.Sub(s.since) < massWindow {
			n++
		}
	}
	return n
}

// halted reports whether nobody may be evicted, and when to ask again.
func (b *budget) halted(now time.Time) (wait time.Duration, halted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.haltedLocked(now)
}

func (b *budget) haltedLocked(now time.Time) (time.Duration, bool) {
	if wait := b.frozen.Sub(now); wait > 0 {
		return wait, true
	}
	for _, s := range b.nodes {
		if !s.bad {
			return 0, false
		}
	}
	// Every node is bad: then it is not the nodes.
	return haltedRecheck, true
}

// spend takes one node's eviction from its zone's budget; when it may not be
// taken yet, wait says when to ask again.
func (b *budget) spend(zone string, now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait, halted := b.haltedLocked(now); halted {
		return wait, false
	}
	last, used := b.last[zone]
	if used {
		if wait := last.Add(b.interval(zone)).Sub(now); wait > 0 {
			return wait, false
		}
	}
	b.last[zone] = now
	return 0, true
}

// interval is the zone's present pause between two evictions.
func (b *budget) interval(zone string) time.Duration {
	all, bad := 0, 0
	for _, s := range b.nodes {
		if s.zone == zone {
			all++
			if s.bad {
				bad++
			}
		}
	}
	if bad*100 > all*unhealthyPercent {
		return evictionIntervalSlow
	}
	return evictionInterval
}
