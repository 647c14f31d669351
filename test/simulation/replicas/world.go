package replicas

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"
)

// Plan says what a run is.
type Plan struct {
	Seed uint64
	// Servers found the cluster, 3 or 5.
	Servers int
	// Length is how long faults come, in fake time; then all is healed and judged.
	Length time.Duration
	// Pauses are the only faults, and frequent.
	Pauses bool
	// Dir is an empty folder, best in memory.
	Dir string
	// Log, if not nil, gets every step and what the servers log.
	Log io.Writer
}

// Summary is what a run did, so that a test notices when it does nothing.
type Summary struct {
	// Trace is a hash over every step.
	Trace [sha256.Size]byte
	// Steps are the moments at which everything was judged, Pieces what the network carried.
	Steps, Pieces int
	// Writes and Reads were acknowledged, Unknown had an unknown outcome, Events were seen by watches.
	Writes, Reads, Unknown, Events int
	// Leaders were elected; Crashes, Cuts and Snapshots happened.
	Leaders, Faults, Snapshots int
}

// World is one run: servers, their network and disks, clients, and the judge. Run it in a bubble of testing/synctest, on one
// processor.
type World struct {
	plan    Plan
	random  *rand.Rand
	events  *events
	network *network
	servers []*server
	judge   *judge
	clients []*client
	nemesis *nemesis
	// guest is a server that joins and leaves.
	guest *server
	// avoided is a server that clients do not call.
	avoided atomic.Pointer[server]

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	trace hash.Hash
	log   io.Writer
	began time.Time
	did   Summary
}

const (
	// startLimit bounds, in fake time, how long the first leader may take, healLimit how long until everything serves after the faults.
	startLimit, healLimit = 20 * time.Second, 30 * time.Second
)

// Run plays a plan. It is called in a bubble.
func Run(plan Plan) (Summary, error) {
	w := &World{
		plan: plan, random: rand.New(rand.NewPCG(plan.Seed, 1)), events: newEvents(), trace: sha256.New(), began: time.Now(), log: io.Discard,
	}
	if plan.Log != nil {
		w.log = &lockedWriter{out: plan.Log}
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.network = newNetwork(plan.Seed, w.events)
	w.judge = newJudge(w)
	w.nemesis = newNemesis(w)
	for i := range plan.Servers {
		w.addServer(fmt.Sprintf("server-%d", i+1), true)
	}
	w.guest = w.addServer("server-guest", false)
	err := w.play()
	w.end()
	w.did.Trace = [sha256.Size]byte(w.trace.Sum(nil))
	w.did.Pieces = w.network.sent
	return w.did, err
}

func (w *World) play() error {
	for _, s := range w.members() {
		w.start(s, w.spread(50*time.Millisecond))
	}
	if err := w.until(startLimit, func() bool { return w.judge.leaders() > 0 }); err != nil {
		return err
	}
	w.startClients()
	w.nemesis.begin()
	if err := w.until(w.plan.Length, nil); err != nil {
		return err
	}
	w.nemesis.heal()
	if err := w.until(healLimit, w.judge.healed); err != nil {
		return err
	}
	if err := w.slowLeader(); err != nil {
		return err
	}
	for _, c := range w.clients {
		c.stop()
	}
	if err := w.until(10*time.Second, nil); err != nil {
		return err
	}
	if err := w.judge.last(); err != nil {
		return err
	}
	if err := w.restored(); err != nil {
		return err
	}
	return w.foundAgain()
}

// members are the servers that belong to the cluster, or should.
func (w *World) members() (members []*server) {
	for _, s := range w.servers {
		if !s.isAway() {
			members = append(members, s)
		}
	}
	return members
}

// until drives the world for a time, or until a condition holds, which then must come.
func (w *World) until(limit time.Duration, done func() bool) error {
	end := time.Now().Add(limit)
	for {
		synctest.Wait()
		if err := w.judge.step(); err != nil {
			return err
		}
		w.did.Steps++
		if done != nil && done() {
			return nil
		}
		if !time.Now().Before(end) {
			break
		}
		at, some := w.events.next()
		if !some || at.After(end) {
			at = end
		}
		if time.Now().Before(at) {
			w.events.await(at)
			continue
		}
		if e, ok := w.events.take(); ok {
			e.do(w.note)
		}
	}
	if done == nil {
		return nil
	}
	return fmt.Errorf("within %v it did not come to: %s", limit, w.judge.awaited)
}

// end stops everything, so that the bubble can end.
func (w *World) end() {
	w.cancel()
	for _, c := range w.clients {
		c.stop()
	}
	for _, s := range w.servers {
		w.nemesis.goOn(s)
		s.slowDown(0)
		w.tasks.Go(func() {
			for {
				if s.begin(true) {
					s.halt(true)
					return
				}
				if s.begin(false) {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	ended := make(chan struct{})
	go func() { w.tasks.Wait(); close(ended) }()
	for {
		synctest.Wait()
		select {
		case <-ended:
			return
		default:
		}
		at, some := w.events.next()
		if !some || at.After(time.Now().Add(time.Second)) {
			at = time.Now().Add(10 * time.Millisecond)
		}
		w.events.await(at)
		if e, ok := w.events.take(); ok {
			e.do(func(string, ...any) {})
		}
	}
}

// task runs f beside the world, which waits for its end.
func (w *World) task(f func()) { w.tasks.Go(f) }

// after does something later, as an event.
func (w *World) after(d time.Duration, f func()) {
	w.events.add(time.Now().Add(d), func(note) { f() })
}

// spread is a random time up to most.
func (w *World) spread(most time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(most)) + 1)
}

// start starts a server that is down, later.
func (w *World) start(s *server, after time.Duration) {
	w.after(after, func() {
		if s.begin(false) {
			w.note("start %s", s.name)
			w.task(s.start)
		}
	})
}

// note writes into the trace.
func (w *World) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%v "+format+"\n", append([]any{time.Since(w.began)}, args...)...)
	io.WriteString(w.trace, line)
	if w.plan.Log != nil {
		io.WriteString(w.log, line[:min(len(line), 200)])
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}
