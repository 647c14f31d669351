package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

const (
	// SettleTimeout is how long the servers may take to serve after the last fault ended: the
	// promise of liveness.
	SettleTimeout = 60 * time.Second
	pollInterval  = 100 * time.Millisecond
)

// A Pace says how long a fault lasts, and how long the calm after it, when all servers serve again.
type Pace struct{ LastMin, LastMax, CalmMin, CalmMax time.Duration }

// The paces: of a run of all kinds, and of one that counts kills.
var (
	Varied = Pace{2 * time.Second, 6 * time.Second, time.Second, 3 * time.Second}
	Quick  = Pace{500 * time.Millisecond, 1500 * time.Millisecond, time.Second, 2 * time.Second}
)

// Lingering is the pace of faults that last for so long each.
func Lingering(last time.Duration) Pace {
	return Pace{last, last + time.Second, Varied.CalmMin, Varied.CalmMax}
}

// A Fault is one kind of harm.
type Fault interface {
	Name() string
	// Needs are the abilities of a cluster without which it cannot be done.
	Needs() []cluster.Ability
	// Start does it and says to whom. Stop undoes it; servers that do not run
	// are started afterwards.
	Start(ctx context.Context, f *Field) (what string, err error)
	Stop(ctx context.Context, f *Field) error
}

// All are the faults, in the order of families.
func All() []Fault {
	return []Fault{
		&kill{name: "kill-leader", choose: leader},
		&kill{name: "kill-any", choose: anyone},
		&kill{name: "kill-minority", choose: minority, needs: []cluster.Ability{cluster.Spare}},
		&kill{name: "kill-all", choose: everyone},
		&stop{},
		&pause{name: "pause-leader", choose: leader},
		&pause{name: "pause-any", choose: anyone},
		&starve{},
		&cut{name: "partition-leader", shape: isolateLeader},
		&cut{name: "partition-any", shape: isolateAny},
		&cut{name: "partition-minority", shape: isolateMinority, needs: []cluster.Ability{cluster.Spare}},
		&cut{name: "deaf-leader", shape: deafLeader},
		&cut{name: "mute-leader", shape: muteLeader},
		&cut{name: "bridge", shape: bridge},
		&cut{name: "ring", shape: ring},
		&lose{},
		&unplug{},
		&fill{},
		&flip{},
		&truncate{},
		&wipe{},
		&replace{name: "replace-leader", choose: leader},
		&replace{name: "replace-any", choose: anyone},
		&rollback{},
		&power{},
		&slowSyncs{},
		&failSyncs{},
		&skew{},
	}
}

// allHarmed begin the names of faults that are not of one server: clients may have to wait for their end.
var allHarmed = []string{"kill-all", "kill-minority", "partition-minority", "ring", "loss"}

// OneServer says whether a fault leaves a majority that reach each other alone.
func OneServer(name string) bool {
	return !slices.ContainsFunc(allHarmed, func(prefix string) bool { return begins(name, prefix) })
}

// Select keeps the faults that a cluster can suffer and whose name begins with one of the names;
// no names are all.
func Select(c cluster.Cluster, names []string) []Fault {
	var faults []Fault
	for _, fault := range All() {
		can := !slices.ContainsFunc(fault.Needs(), func(a cluster.Ability) bool { return !c.Can(a) })
		if can && (len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return begins(fault.Name(), n) })) {
			faults = append(faults, fault)
		}
	}
	return faults
}

func begins(name, prefix string) bool {
	return len(name) >= len(prefix) && name[:len(prefix)] == prefix
}

// Field is where the faults act.
type Field struct {
	cluster.Cluster
	random *rand.Rand
	log    func(format string, args ...any)
}

// leader is the leader, or anyone if none is found.
func leader(ctx context.Context, f *Field) []int {
	i, err := cluster.Leader(ctx, f)
	if err != nil {
		return anyone(ctx, f)
	}
	return []int{i}
}

func anyone(_ context.Context, f *Field) []int { return []int{f.random.IntN(f.Size())} }

// follower is any server but the leader.
func follower(ctx context.Context, f *Field) int {
	all := f.others(leader(ctx, f)[0])
	return all[f.random.IntN(len(all))]
}

// minority is the leader and those after it, as many as may be missing.
func minority(ctx context.Context, f *Field) []int {
	one := leader(ctx, f)
	return append(one, f.others(one[0])[:(f.Size()-1)/2-1]...)
}

func everyone(_ context.Context, f *Field) []int { return append(f.others(0), 0) }

func names(servers []int) string {
	text := ""
	for _, i := range servers {
		text += " " + cluster.Name(i)
	}
	return text[1:]
}

// A Nemesis does one fault after the other.
type Nemesis struct {
	field  *Field
	clock  history.Clock
	faults []Fault
	deck   []Fault
	// Pace is Varied unless it is set before Run.
	Pace Pace
	// Done are the faults so far.
	Done []history.Fault
	// Findings are servers that ended unharmed, or did not serve again in time.
	Findings []string
}

// New makes a nemesis with a seed.
func New(c cluster.Cluster, clock history.Clock, faults []Fault, seed uint64, log func(string, ...any)) *Nemesis {
	field := &Field{Cluster: c, random: rand.New(rand.NewPCG(seed, 0)), log: log}
	return &Nemesis{field: field, clock: clock, faults: faults, Pace: Varied}
}

// Run does faults until ctx ends or limit is reached (0: no limit), and undoes the last one.
func (n *Nemesis) Run(ctx context.Context, limit int) {
	if len(n.faults) == 0 {
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil && (limit == 0 || len(n.Done) < limit) && len(n.Findings) == 0 {
		n.once(ctx)
		n.sleep(ctx, n.Pace.CalmMin, n.Pace.CalmMax)
	}
}

func (n *Nemesis) next() Fault {
	if len(n.deck) == 0 {
		n.deck = slices.Clone(n.faults)
		n.field.random.Shuffle(len(n.deck), func(i, j int) { n.deck[i], n.deck[j] = n.deck[j], n.deck[i] })
	}
	fault := n.deck[0]
	n.deck = n.deck[1:]
	return fault
}

func (n *Nemesis) once(ctx context.Context) {
	n.noneEnded()
	fault := n.next()
	done := history.Fault{Name: fault.Name(), Start: n.clock.Now()}
	what, err := fault.Start(ctx, n.field)
	done.What = what
	n.field.log("fault %s: %s", fault.Name(), what)
	n.sleep(ctx, n.Pace.LastMin, n.Pace.LastMax)
	undo := context.WithoutCancel(ctx)
	err = errors.Join(err, fault.Stop(undo, n.field), n.field.Restore())
	done.Stop = n.clock.Now()
	if err != nil {
		done.Error = err.Error()
		n.Findings = append(n.Findings, fmt.Sprintf("fault %s (%s): %v", done.Name, what, err))
	}
	n.Done = append(n.Done, done)
	if err := Settle(undo, n.field.Cluster); err != nil {
		n.Findings = append(n.Findings, fmt.Sprintf("after %s (%s): %v", done.Name, what, err))
	}
}

// noneEnded finds servers that have ended although nobody harmed them.
func (n *Nemesis) noneEnded() {
	for i := range n.field.Size() {
		if !n.field.Running(i) {
			n.Findings = append(n.Findings, cluster.Name(i)+" ended although nothing had been done to it")
		}
	}
}

func (n *Nemesis) sleep(ctx context.Context, least, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(least + time.Duration(n.field.random.Int64N(int64(most-least)))):
	}
}

// Restore lets every server run and reach the others.
func (f *Field) Restore() error {
	err := f.Mend()
	for i := range f.Size() {
		err = errors.Join(err, f.Resume(i), f.Start(i))
	}
	return err
}

// Settle waits until all servers answer, vote, follow one leader, and have applied what any of them had
// when it was first asked: only then may the next disk be harmed. A server that ends while it
// starts is started again, as a supervisor would do: it may heal in steps.
func Settle(ctx context.Context, c cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, SettleTimeout)
	defer cancel()
	goal := uint64(0)
	for {
		why := unsettled(ctx, c, &goal)
		if why == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not serving after %v: %w", SettleTimeout, why)
		case <-time.After(pollInterval):
		}
	}
}

// unsettled says what is not as it should be. The goal is set when first all answer.
func unsettled(ctx context.Context, c cluster.Cluster, goal *uint64) error {
	leaders, least, most := map[string]bool{}, uint64(math.MaxUint64), uint64(0)
	for i := range c.Size() {
		if !c.Running(i) {
			return errors.Join(fmt.Errorf("%s has ended", cluster.Name(i)), c.Start(i))
		}
		status, err := cluster.Ask(ctx, c, i)
		if err != nil {
			return err
		}
		if voters := status.Voters(); voters != c.Size() {
			return fmt.Errorf("%s knows of %d voters", cluster.Name(i), voters)
		}
		leaders[status.Leader] = true
		least, most = min(least, status.Applied), max(most, status.Applied)
	}
	if *goal == 0 {
		*goal = most
	}
	switch {
	case len(leaders) != 1 || leaders[""]:
		return fmt.Errorf("the servers follow %v", leaders)
	case least < *goal:
		return fmt.Errorf("a server has applied %d, another had %d before", least, *goal)
	default:
		return nil
	}
}
