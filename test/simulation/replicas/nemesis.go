package replicas

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// nemesis chooses what goes wrong, and when.
type nemesis struct {
	world  *World
	random *rand.Rand
	over   bool
	// changing: the guest joins or leaves.
	changing atomic.Bool
	// wiped is when a disk was last taken away.
	wiped time.Time
	// crowds is how many crowds there were.
	crowds int
}

func newNemesis(w *World) *nemesis {
	return &nemesis{world: w, random: rand.New(rand.NewPCG(w.plan.Seed, 2))}
}

// excuses reports whether a server may have stopped itself for a reason.
func (n *nemesis) excuses(s *server, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	disk := slices.ContainsFunc([]error{replica.ErrDiskFailed, replica.ErrDiskStalled, syscall.EIO, syscall.ENOSPC}, func(fault error) bool {
		return errors.Is(err, fault)
	})
	return s.harmed && disk || s.away || !s.founder && errors.Is(err, raftstore.ErrRemoved)
}

// begin lets faults come.
func (n *nemesis) begin() { n.next() }

// next chooses the next fault. Weights are the repetitions.
func (n *nemesis) next() {
	n.world.after(time.Duration(n.random.Int64N(int64(1200*time.Millisecond))), func() {
		if n.over {
			return
		}
		faults := []func(){
			n.crash, n.crash, n.crash, n.stop, n.kill, n.isolate, n.isolate, n.cutOne, n.cutOne, n.cutPair, n.slowLink,
			n.transfer, n.slowDisk, n.eio, n.eio, n.noSpace, n.noSnapshots, n.noSnapshots, n.wipe, n.guest, n.crowd, n.pause, n.pause,
		}
		if n.world.plan.Pauses {
			faults = []func(){n.pause}
		}
		faults[n.random.IntN(len(faults))]()
		n.world.did.Faults++
		n.next()
	})
}

func (n *nemesis) any() *server {
	members := n.world.members()
	return members[n.random.IntN(len(members))]
}

// time is a random one between two.
func (n *nemesis) time(least, most time.Duration) time.Duration {
	return least + time.Duration(n.random.Int64N(int64(most-least)))
}

func (n *nemesis) crash() { n.halt(n.any(), true, n.time(10*time.Millisecond, 3*time.Second)) }
func (n *nemesis) stop()  { n.halt(n.any(), false, n.time(10*time.Millisecond, 2*time.Second)) }

// kill ends a process without a power cut: what it had written is there.
func (n *nemesis) kill() {
	s := n.any()
	s.files.keepNext()
	n.halt(s, true, n.time(10*time.Millisecond, 2*time.Second))
}

// eio makes the disk of a server refuse to sync. The server stops itself, and is started again.
func (n *nemesis) eio() {
	s := n.any()
	n.world.note("eio %s", s.name)
	err := syscall.EIO
	if n.random.IntN(3) == 0 {
		err = syscall.ENOSPC
	}
	s.harm(err)
	n.world.after(n.time(20*time.Millisecond, time.Second), func() {
		s.harm(nil)
		n.revive(s)
	})
}

// revive starts a server again that stopped itself.
func (n *nemesis) revive(s *server) {
	if s.stopped() != nil && !s.isAway() {
		n.halt(s, true, n.time(10*time.Millisecond, time.Second))
	}
	s.mu.Lock()
	harmed := s.harmed
	s.mu.Unlock()
	if harmed { // it may find out later
		n.world.after(200*time.Millisecond, func() { n.revive(s) })
	}
}

// noSpace says of a disk that it is nearly full, for a while.
func (n *nemesis) noSpace() {
	s := n.any()
	n.world.note("no space %s", s.name)
	s.disk.SetSpace(replica.Space{TotalBytes: 100 << 30, FreeBytes: n.random.Int64N(200 << 20)})
	n.world.after(n.time(100*time.Millisecond, 3*time.Second), func() { s.disk.SetSpace(replica.Space{}) })
}

// noSnapshots makes snapshots fail half written, for a while, and cuts the power when it is over.
func (n *nemesis) noSnapshots() {
	s := n.any()
	n.world.note("no snapshots %s", s.name)
	s.disk.FailSnapshots(syscall.EIO)
	n.world.after(n.time(time.Second, 8*time.Second), func() {
		s.disk.FailSnapshots(nil)
		n.halt(s, true, n.time(10*time.Millisecond, time.Second))
	})
}

// wipe takes the disk of one server away, if all others run. It comes back under a new id.
func (n *nemesis) wipe() {
	s := n.any()
	for _, other := range n.world.members() {
		if store := other.running(); store == nil || !store.Leadership().Ready || other.stopped() != nil {
			return
		}
	}
	if time.Since(n.wiped) < 12*time.Second || n.changing.Load() || !s.begin(true) {
		return
	}
	n.wiped = time.Now()
	n.world.note("wipe %s", s.name)
	n.world.task(func() {
		s.halt(true)
		s.wipe()
	})
	n.comeBack(s, n.time(500*time.Millisecond, 2*time.Second))
}

// guest lets a server join, and leave again.
func (n *nemesis) guest() {
	g := n.world.guest
	if time.Since(n.wiped) < 12*time.Second || n.changing.Swap(true) {
		return
	}
	if g.isAway() {
		n.world.note("guest comes")
		g.wipe()
		g.setAway(false)
		n.world.start(g, time.Millisecond)
		n.order(func(ctx context.Context, s *server) error { return s.running().AddMember(ctx, g.name, g.name) }, func() {})
		return
	}
	n.world.note("guest goes")
	n.order(func(ctx context.Context, s *server) error { return s.running().RemoveMember(ctx, g.name) }, func() {
		g.setAway(true)
		n.end(g)
	})
}

// end halts a server that is not to come back.
func (n *nemesis) end(s *server) {
	switch {
	case s.begin(true):
		n.world.task(func() { s.halt(true) })
	case n.world.ctx.Err() == nil:
		n.world.after(50*time.Millisecond, func() {
			if s.isAway() {
				n.end(s)
			}
		})
	}
}

// order has the members changed by one server or another, until it is done.
func (n *nemesis) order(change func(context.Context, *server) error, done func()) {
	founders := n.world.servers[:n.world.plan.Servers]
	n.world.task(func() {
		for i := 0; n.world.ctx.Err() == nil; i++ {
			s := founders[i%len(founders)]
			if s.running() != nil {
				ctx, cancel := context.WithTimeout(n.world.ctx, 5*time.Second)
				err := change(ctx, s)
				cancel()
				if err == nil {
					n.world.note("members changed")
					done()
					n.changing.Store(false)
					return
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// crowdSize is how many commands a crowd sends through one server at once: more than a quarter of a session's window.
const crowdSize = 3000

// crowd sends many commands at once and cuts the leader off meanwhile, so that many answers are lost. It needs a judge who sees
// everything.
func (n *nemesis) crowd() {
	s := n.any()
	store := s.running()
	if n.world.ringBytes() != ringLarge || store == nil || n.crowds > 0 {
		return
	}
	n.crowds++
	n.world.note("crowd %s", s.name)
	for i := range crowdSize {
		n.world.task(func() { n.world.one(store, i) })
	}
	for _, other := range n.world.members() {
		if l := other.running(); l != nil && l.Leadership().Leader {
			at := n.time(time.Millisecond, 40*time.Millisecond)
			n.world.after(at, func() { n.halt(other, true, n.time(10*time.Millisecond, time.Second)) })
		}
	}
}

func (n *nemesis) halt(s *server, crash bool, away time.Duration) {
	if !s.begin(true) {
		return
	}
	n.world.note("halt %s %v", s.name, crash)
	n.world.task(func() { s.halt(crash) })
	n.comeBack(s, away)
}

// comeBack starts a server that is down once it has ended.
func (n *nemesis) comeBack(s *server, away time.Duration) {
	n.world.after(away, func() {
		switch {
		case s.begin(false):
			n.world.note("start %s", s.name)
			n.world.task(s.start)
		case s.running() == nil && n.world.ctx.Err() == nil:
			n.comeBack(s, 20*time.Millisecond)
		}
	})
}

// cut cuts links for a while.
func (n *nemesis) cut(links ...link) {
	for _, l := range links {
		n.world.note("cut %v", l)
		n.world.network.setCut(l, true)
	}
	n.world.after(n.time(50*time.Millisecond, 4*time.Second), func() { n.mend(links...) })
}

func (n *nemesis) mend(links ...link) {
	for _, l := range links {
		n.world.network.setCut(l, false)
	}
}

func (n *nemesis) pair() (a, b string) {
	i := n.random.IntN(len(n.world.servers))
	k := (i + 1 + n.random.IntN(len(n.world.servers)-1)) % len(n.world.servers)
	return n.world.servers[i].name, n.world.servers[k].name
}

func (n *nemesis) cutOne() {
	a, b := n.pair()
	n.cut(link{a, b})
}

func (n *nemesis) cutPair() {
	a, b := n.pair()
	n.cut(link{a, b}, link{b, a})
}

func (n *nemesis) isolate() {
	one := n.any()
	var links []link
	for _, s := range n.world.servers {
		if s != one {
			links = append(links, link{one.name, s.name}, link{s.name, one.name})
		}
	}
	n.cut(links...)
}

func (n *nemesis) slowLink() {
	a, b := n.pair()
	by := n.time(time.Millisecond, 300*time.Millisecond)
	n.world.note("slow %s>%s %v", a, b, by)
	n.world.network.setSlow(link{a, b}, by)
	n.world.after(n.time(100*time.Millisecond, 3*time.Second), func() { n.world.network.setSlow(link{a, b}, 0) })
}

func (n *nemesis) slowDisk() {
	s := n.any()
	by := n.time(time.Millisecond, 400*time.Millisecond)
	n.world.note("slow disk %s %v", s.name, by)
	s.slowDown(by)
	n.world.after(n.time(100*time.Millisecond, 5*time.Second), func() { s.slowDown(syncTime) })
}

func (n *nemesis) transfer() {
	s := n.any()
	if store := s.running(); store != nil && store.Leadership().Leader {
		n.world.note("transfer %s", s.name)
		n.world.task(func() { _ = store.TransferLeadership(n.world.ctx) }) // it may well fail now
	}
}

// heal ends all faults.
func (n *nemesis) heal() {
	n.over = true
	n.world.note("heal")
	for _, a := range n.world.servers {
		n.goOn(a)
		a.slowDown(syncTime)
		a.harm(nil)
		a.disk.SetSpace(replica.Space{})
		a.disk.FailSnapshots(nil)
		for _, b := range n.world.servers {
			n.world.network.setCut(link{a.name, b.name}, false)
			n.world.network.setSlow(link{a.name, b.name}, 0)
		}
	}
}
