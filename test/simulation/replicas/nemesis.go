package replicas

import (
	"math/rand/v2"
	"time"
)

// nemesis chooses what goes wrong, and when.
type nemesis struct {
	world  *World
	random *rand.Rand
	over   bool
}

func newNemesis(w *World) *nemesis {
	return &nemesis{world: w, random: rand.New(rand.NewPCG(w.plan.Seed, 2))}
}

// excuses reports whether a server may have stopped itself for a reason.
func (n *nemesis) excuses(*server, error) bool { return false }

// begin lets faults come.
func (n *nemesis) begin() { n.next() }

// next chooses the next fault. Weights are the repetitions.
func (n *nemesis) next() {
	n.world.after(time.Duration(n.random.Int64N(int64(1200*time.Millisecond))), func() {
		if n.over {
			return
		}
		faults := []func(){n.crash, n.crash, n.crash, n.stop, n.isolate, n.isolate, n.cutOne, n.cutOne, n.cutPair, n.transfer, n.slowLink, n.slowDisk}
		faults[n.random.IntN(len(faults))]()
		n.world.did.Faults++
		n.next()
	})
}

func (n *nemesis) any() *server { return n.world.servers[n.random.IntN(len(n.world.servers))] }

// time is a random one between two.
func (n *nemesis) time(least, most time.Duration) time.Duration {
	return least + time.Duration(n.random.Int64N(int64(most-least)))
}

func (n *nemesis) crash() { n.halt(n.any(), true, n.time(10*time.Millisecond, 3*time.Second)) }
func (n *nemesis) stop()  { n.halt(n.any(), false, n.time(10*time.Millisecond, 2*time.Second)) }

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
		a.slowDown(syncTime)
		for _, b := range n.world.servers {
			n.world.network.setCut(link{a.name, b.name}, false)
			n.world.network.setSlow(link{a.name, b.name}, 0)
		}
	}
}
