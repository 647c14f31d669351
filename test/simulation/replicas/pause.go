package replicas

import (
	"sync"
	"time"
)

// pauseMost is how long a pause lasts at most: beyond every timeout of raft, below that after which a disk counts as stalled.
const pauseMost = 3 * time.Second

// pause holds a server still, as far as others can tell: what it sends and what is sent to it waits, whole and in order, and so does
// whatever needs its disk, which is how raft's own loop comes to stand. Then all of it goes on at once. Its timers run on, for a
// bubble has one clock.
func (n *nemesis) pause() {
	s := n.any()
	if !s.files.hold() {
		return
	}
	n.world.note("pause %s", s.name)
	s.disk.Stall()
	n.world.network.hold(s.name)
	n.world.after(n.time(50*time.Millisecond, pauseMost), func() { n.goOn(s) })
}

// goOn ends a pause, if there is one.
func (n *nemesis) goOn(s *server) {
	n.world.note("go on %s", s.name)
	s.disk.Resume()
	s.files.release()
	n.world.network.release(s.name)
}

// holder keeps pieces of the network that arrive while one of their servers is paused.
type holder struct {
	mu     sync.Mutex
	paused map[string]bool
	kept   []keptPiece
}

type keptPiece struct {
	over    link
	deliver func()
}

func (n *network) hold(server string) {
	n.holder.mu.Lock()
	defer n.holder.mu.Unlock()
	n.holder.paused[server] = true
}

// release delivers what was kept for a server, in the order in which it came, unless the other end is paused too.
func (n *network) release(server string) {
	h := &n.holder
	h.mu.Lock()
	delete(h.paused, server)
	var free, still []keptPiece
	for _, p := range h.kept {
		if h.paused[p.over.from] || h.paused[p.over.to] {
			still = append(still, p)
		} else {
			free = append(free, p)
		}
	}
	h.kept = still
	h.mu.Unlock()
	for _, p := range free {
		p.deliver()
	}
}

// arrive delivers a piece now, or when neither end is paused any more.
func (n *network) arrive(over link, deliver func()) {
	h := &n.holder
	h.mu.Lock()
	held := h.paused[over.from] || h.paused[over.to]
	if held {
		h.kept = append(h.kept, keptPiece{over, deliver})
	}
	h.mu.Unlock()
	if !held {
		deliver()
	}
}

// hold makes syncs wait until release, and reports whether they did not wait already.
func (f *files) hold() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		return false
	}
	f.held = make(chan struct{})
	return true
}

func (f *files) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		close(f.held)
		f.held = nil
	}
}

// wait is as long as a sync takes.
func (f *files) wait() {
	f.mu.Lock()
	delay, held := f.delay, f.held
	f.mu.Unlock()
	time.Sleep(delay)
	if held != nil {
		<-held
	}
}
