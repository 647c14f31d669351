package controllers

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var (
	wholeSweep = flag.Bool("sweep", false, "play every pattern of faults at every write, and print a table")
	sweepSeed  = flag.Uint64("sweep.seed", uint64(time.Now().UnixNano()), "which faults are played, unless all are")
	sweepOf    = flag.String("sweep.scenario", "", "play this scenario only")
	sweepPairs = flag.Bool("sweep.pairs", false, "let a second fault follow each, within a few writes")
	sweepOnly  = flag.String("sweep.at", "", "play one fault only, as PATTERN/NUMBER of the write, and print the writes around it")
)

const (
	// faultsOfEach is how many faults of each scenario are played when not all are.
	faultsOfEach = 10
	// turns is how often the machines of a scenario act after each of its steps, and turn is how long they rest.
	turns, turn = 14, 5 * time.Second
	// staleFor is how long events are held back, absentFor how long nobody leads after a crash.
	staleFor, absentFor = 7 * time.Second, time.Second
	// secondWithin is how many writes after the first fault of a pair the second one strikes at most.
	secondWithin = 6
	// writesMax ends a run that writes in circles.
	writesMax = 2000
)

// scenario is one story that some controllers play in.
type scenario struct {
	name string
	// controllers are the names of those that run.
	controllers []string
	// steps are what users and machines do, one after the other.
	steps []func(w *reconciletest.World)
	// machines are what schedulers and nodes do all the time; nil lets pods run and end.
	machines func(w *reconciletest.World)
	// ends picks the lines of the end that have to be as without a fault; nil for all.
	ends func(line string) bool
	// holds is asked before each write; it returns what must never be, or nothing.
	holds func(w *reconciletest.World, step int) string
}

// pattern is one kind of fault at a write.
type pattern struct {
	name   string
	strike func(p *play) reconciletest.Outcome
}

// patterns are the three of Sieve (stale view, missed events, crash), and what single writes meet.
var patterns = []pattern{
	{"refused", func(*play) reconciletest.Outcome { return reconciletest.Refused }},
	{"conflict", func(*play) reconciletest.Outcome { return reconciletest.Conflicted }},
	{"answer lost", func(*play) reconciletest.Outcome { return reconciletest.Lost }},
	{"crash before", func(p *play) reconciletest.Outcome {
		p.crash()
		return reconciletest.Refused
	}},
	{"crash after", func(p *play) reconciletest.Outcome {
		p.crash()
		return reconciletest.Lost
	}},
	{"stale view", func(p *play) reconciletest.Outcome {
		p.world.Hold()
		time.AfterFunc(staleFor, p.world.Release)
		return reconciletest.Applied
	}},
	{"missed events", func(p *play) reconciletest.Outcome {
		p.world.Hold()
		time.AfterFunc(staleFor, p.world.Break)
		return reconciletest.Applied
	}},
}

// play is one run of a scenario.
type play struct {
	scenario scenario
	faults   []fault
	world    *reconciletest.World

	discovery discovery.DiscoveryInterface
	fenced    atomic.Bool // nobody leads, so that no write is taken
	ended     atomic.Value

	mu     sync.Mutex
	writes []string
	wrong  []string
	step   int
}

// result is how a run ended.
type result struct {
	writes []string
	wrong  []string
	end    string
}

// run plays the scenario in a bubble of its own.
func (p *play) run(t *testing.T) (r result) {
	synctest.Test(t, func(t *testing.T) {
		p.world = reconciletest.New(t)
		p.discovery = p.world.Discovery(sweptKinds)
		ctx, cancel := context.WithCancel(t.Context())
		p.world.Intercept(p.intercept)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.keepRunning(ctx)
		}()
		for i, step := range p.scenario.steps {
			p.mu.Lock()
			p.step = i
			p.mu.Unlock()
			step(p.world)
			p.turn(turns)
		}
		before := len(p.writes)
		p.turn(turns)
		if len(p.writes) > before {
			p.wrong = append(p.wrong, fmt.Sprintf("it writes on when all is done: %v", p.writes[before:]))
		}
		r = result{writes: p.writes, wrong: p.wrong, end: dump(p.world, p.scenario.ends)}
		cancel()
		<-done
	})
	return r
}

// turn lets controllers and machines act so many times.
func (p *play) turn(times int) {
	for range times {
		time.Sleep(turn)
		synctest.Wait()
		p.machines()
		synctest.Wait()
		p.judge()
	}
}

func (p *play) machines() {
	if p.scenario.machines != nil {
		p.scenario.machines(p.world)
		return
	}
	p.world.RunPods(true)
}

// intercept counts a write and lets the fault strike.
func (p *play) intercept(write string) reconciletest.Outcome {
	if p.fenced.Load() {
		return reconciletest.Refused
	}
	p.judge()
	p.mu.Lock()
	p.writes = append(p.writes, write)
	n := len(p.writes)
	if n == writesMax {
		p.wrong = append(p.wrong, fmt.Sprintf("it writes in circles: %q", p.writes[n-8:]))
	}
	p.mu.Unlock()
	if n >= writesMax {
		p.crash()
		return reconciletest.Refused
	}
	for _, f := range p.faults {
		if n == f.at {
			return patterns[f.pattern].strike(p)
		}
	}
	return reconciletest.Applied
}

// judge asks the scenario whether the world is as it may be.
func (p *play) judge() {
	if p.scenario.holds == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if wrong := p.scenario.holds(p.world, p.step); wrong != "" {
		p.wrong = append(p.wrong, fmt.Sprintf("before write %d of step %d: %s", len(p.writes)+1, p.step+1, wrong))
	}
}

func (p *play) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.writes)
}

// crash ends the present term at once.
func (p *play) crash() {
	p.fenced.Store(true)
	p.ended.Load().(context.CancelFunc)()
}

// keepRunning runs the controllers, one term after the other.
func (p *play) keepRunning(ctx context.Context) {
	for ctx.Err() == nil && p.count() < writesMax {
		term, end := context.WithCancel(ctx)
		p.ended.Store(end)
		cfg, env := p.server()
		controllers := slices.DeleteFunc(all(cfg), func(c reconcile.Controller) bool { return !slices.Contains(p.scenario.controllers, c.Name) })
		p.world.Warm(controllers...)
		p.world.Start()
		p.world.Informers.WaitForCacheSync(term.Done())
		p.fenced.Store(false)
		var wg sync.WaitGroup
		for _, c := range controllers {
			wg.Go(func() { _ = c.Start(term, env) })
		}
		wg.Wait()
		end()
		if ctx.Err() == nil {
			time.Sleep(absentFor)
			p.world.NewCaches()
		}
	}
}

// server is what controllers get from a server with caches of its own.
func (p *play) server() (Config, reconcile.Env) {
	monitors := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for _, k := range sweptKinds {
		monitors[k.Resource] = p.world.Informer(k.Resource, "")
	}
	env := p.world.Env()
	env.Metadata, env.Discovery = p.world.Metadata(sweptKinds), p.discovery
	return Config{
		Monitors: func() map[schema.GroupVersionResource]cache.SharedIndexInformer { return monitors }, RootCA: []byte("PEM"),
	}, env
}

// sweptKinds are those that the garbage collector and the namespace controller know.
var sweptKinds = append(kinds(),
	reconciletest.Kind{Resource: batchv1.SchemeGroupVersion.WithResource("jobs"), Kind: "Job", Namespaced: true},
	reconciletest.Kind{Resource: batchv1.SchemeGroupVersion.WithResource("cronjobs"), Kind: "CronJob", Namespaced: true},
	reconciletest.Kind{Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), Kind: "ServiceAccount", Namespaced: true},
	reconciletest.Kind{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Namespaced: true},
	reconciletest.Kind{Resource: networkingv1.SchemeGroupVersion.WithResource("ipaddresses"), Kind: "IPAddress"})

// tally counts the runs of one pattern in one scenario.
type tally struct{ runs, wrong int }

// TestSweep lets faults strike between any two writes: what must never be does not come about, and the world ends as it does
// without the fault.
func TestSweep(t *testing.T) {
	seed := *sweepSeed
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	table := map[string][]tally{}
	for _, s := range scenarios {
		if *sweepOf != "" && s.name != *sweepOf {
			continue
		}
		without := (&play{scenario: s}).run(t)
		if len(without.wrong) > 0 || len(without.writes) == 0 {
			t.Errorf("%s without a fault: %d writes; %v", s.name, len(without.writes), without.wrong)
			continue
		}
		table[s.name] = make([]tally, len(patterns))
		for _, f := range faults(random, len(without.writes)) {
			p := &play{scenario: s, faults: []fault{f}}
			if *sweepPairs {
				p.faults = append(p.faults, fault{random.IntN(len(patterns)), f.at + 1 + random.IntN(secondWithin)})
			}
			got := p.run(t)
			count := &table[s.name][f.pattern]
			count.runs++
			if complaint := compare(without, got); complaint != "" {
				count.wrong++
				t.Errorf("%s, %v, of %d writes: %s\n%s", s.name, p.faults, len(without.writes), complaint, around(got.writes, f.at))
			}
		}
	}
	if *wholeSweep {
		printTable(os.Stdout, table)
	}
}

// fault is a pattern at a write, counted from 1.
type fault struct{ pattern, at int }

func (f fault) String() string { return fmt.Sprintf("%s at write %d", patterns[f.pattern].name, f.at) }

// faults are those to play in a scenario of so many writes.
func faults(random *rand.Rand, writes int) []fault {
	var every []fault
	for pattern, p := range patterns {
		for at := 1; at <= writes; at++ {
			if *sweepOnly == "" || *sweepOnly == fmt.Sprintf("%s/%d", p.name, at) {
				every = append(every, fault{pattern, at})
			}
		}
	}
	if *wholeSweep || *sweepOnly != "" {
		return every
	}
	random.Shuffle(len(every), func(i, j int) { every[i], every[j] = every[j], every[i] })
	return every[:min(len(every), faultsOfEach)]
}

func compare(want, got result) string {
	var complaints []string
	if len(got.wrong) > 0 {
		complaints = append(complaints, got.wrong[len(got.wrong)-1], fmt.Sprintf("(%d complaints)", len(got.wrong)))
	}
	if diff := diffOf(want.end, got.end); diff != "" {
		complaints = append(complaints, "it ends otherwise than without the fault:\n"+diff)
	}
	return strings.Join(complaints, "\n")
}

// around are the writes next to the fault, or all of the run when one fault is played.
func around(writes []string, at int) string {
	from, to := max(0, at-4), min(len(writes), at+6)
	if *sweepOnly != "" {
		from, to = 0, len(writes)
	}
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%4d %s\n", i+1, writes[i])
	}
	return b.String()
}

// printTable shows the runs of every scenario and pattern.
func printTable(to io.Writer, table map[string][]tally) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprint(w, "scenario")
	for _, p := range patterns {
		fmt.Fprintf(w, "\t%s", p.name)
	}
	fmt.Fprintln(w)
	for _, s := range scenarios {
		if table[s.name] == nil {
			continue
		}
		fmt.Fprint(w, s.name)
		for _, n := range table[s.name] {
			fmt.Fprintf(w, "\t%d of %d", n.runs-n.wrong, n.runs)
		}
		fmt.Fprintln(w)
	}
}

// TestEveryControllerIsSwept: a controller plays in a scenario, or there is a reason why not.
func TestEveryControllerIsSwept(t *testing.T) {
	swept := map[string]bool{}
	for _, s := range scenarios {
		for _, name := range s.controllers {
			swept[name] = true
		}
	}
	known := map[string]bool{}
	for _, c := range all(Config{}) {
		known[c.Name] = true
		if _, excused := notSwept[c.Name]; excused == swept[c.Name] {
			t.Errorf("%s: in a scenario %v, in notSwept %v; name it in a scenario, or in notSwept with the reason (sweep_scenarios_test.go)",
				c.Name, swept[c.Name], excused)
		}
	}
	for name := range swept {
		if !known[name] {
			t.Errorf("there is no controller %s", name)
		}
	}
	for name := range notSwept {
		if !known[name] {
			t.Errorf("there is no controller %s", name)
		}
	}
}
