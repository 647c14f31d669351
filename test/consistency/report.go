package consistency

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/check"
	"github.com/setpoint-io/setpoint/test/consistency/history"
	"github.com/setpoint-io/setpoint/test/consistency/nemesis"
)

// A Report is what a run did and found.
type Report struct {
	Seed uint64
	// Operations counts them by kind, Outcomes by what the client knows.
	Operations map[history.Kind]int
	Outcomes   map[history.Outcome]int
	Checks     []check.Result // summed over epochs
	Faults     []history.Fault
	// Findings are what was not as promised beside the checkers' violations.
	Findings []string

	mu       sync.Mutex
	took     time.Duration
	epochs   int
	pods     int  // on nodes, to which nothing is done
	equal    bool // state hashes
	restored bool
	marks    [][]mark // of each epoch
	streams  int
	past     int // lists of a moment in the past
}

func (r *Report) find(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

// add counts an epoch.
func (r *Report) add(e *history.Epoch, results []check.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Operations == nil {
		r.Operations, r.Outcomes = map[history.Kind]int{}, map[history.Outcome]int{}
		r.Checks = make([]check.Result, len(results))
	}
	r.epochs++
	r.streams += len(e.Streams)
	for i := range e.Ops {
		op := &e.Ops[i]
		r.Operations[op.Kind]++
		r.Outcomes[op.Outcome]++
		if op.Level == history.Exact && op.Outcome == history.OK {
			r.past++
		}
	}
	r.marks = append(r.marks, marksOf(e))
	for i, result := range results {
		r.Checks[i].Checker = result.Checker
		r.Checks[i].Checked += result.Checked
		r.Checks[i].Bad += result.Bad
		for _, violation := range result.Violations {
			r.Checks[i].Violations = append(r.Checks[i].Violations, e.Namespace+": "+violation)
		}
	}
}

func (r *Report) faults(n *nemesis.Nemesis) {
	r.Faults = n.Done
	r.Findings = append(r.Findings, n.Findings...)
}

// Total is the number of operations.
func (r *Report) Total() int {
	total := 0
	for _, n := range r.Operations {
		total += n
	}
	return total
}

// Bad is the number of violations and findings.
func (r *Report) Bad() int {
	bad := len(r.Findings)
	for _, result := range r.Checks {
		bad += result.Bad
	}
	return bad
}

// gapLimit is how far after a kill, or until the next fault, a time without acknowledged writes is looked for.
const gapLimit = 15 * time.Second

// WriteGaps returns, sorted, for how long no client had a write acknowledged around
// each kill of a leader. Kills at the turn of two epochs are left out: there the clients pause.
func (r *Report) WriteGaps() []time.Duration {
	var gaps []time.Duration
	for i, fault := range r.Faults {
		if fault.Name != "kill-leader" {
			continue
		}
		until := fault.Start + int64(gapLimit)
		if i+1 < len(r.Faults) {
			until = min(until, r.Faults[i+1].Start)
		}
		for _, marks := range r.marks {
			if gap, ok := gapAround(acksOf(marks), fault.Start, until); ok {
				gaps = append(gaps, gap)
			}
		}
	}
	slices.Sort(gaps)
	return gaps
}

// acksOf are the ends of acknowledged writes, in order.
func acksOf(marks []mark) []int64 {
	var acks []int64
	for _, m := range marks {
		if m.wrote {
			acks = append(acks, m.end)
		}
	}
	return acks
}

// gapAround is the longest time without an acknowledgement that begins before until and ends after at.
func gapAround(acks []int64, at, until int64) (time.Duration, bool) {
	i := sort.Search(len(acks), func(i int) bool { return acks[i] > at })
	if i == 0 || i == len(acks) {
		return 0, false
	}
	longest := int64(0)
	for ; i < len(acks) && acks[i-1] < until; i++ {
		longest = max(longest, acks[i]-acks[i-1])
	}
	return time.Duration(longest), true
}

// String is the table at the end of a run.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "operations  %d in %v, %d epochs, %d streams of watches, seed %d\n", r.Total(), r.took.Round(time.Second), r.epochs, r.streams, r.Seed)
	fmt.Fprintf(&b, "  kinds     %s, of which %d lists of the past\n  outcomes  %s\n", counts(r.Operations), r.past, counts(r.Outcomes))
	kinds := map[string]int{}
	for _, fault := range r.Faults {
		kinds[fault.Name]++
	}
	fmt.Fprintf(&b, "faults      %d of %d kinds\n  %s\n%s", len(r.Faults), len(kinds), counts(kinds), r.costTable())
	if gaps := r.WriteGaps(); len(gaps) > 0 {
		fmt.Fprintf(&b, "write gap   %d leader kills: p50 %v, max %v\n", len(gaps), gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond))
	}
	fmt.Fprintf(&b, "%-42s %10s %10s\n", "checker", "checked", "violations")
	for _, result := range r.Checks {
		fmt.Fprintf(&b, "%-42s %10d %10d\n", result.Checker, result.Checked, result.Bad)
	}
	fmt.Fprintf(&b, "pods that no fault may harm: %d\n", r.pods)
	fmt.Fprintf(&b, "state hashes equal on all servers: %v; restored from a backup: %v\nviolations  %d\n", r.equal, r.restored, r.Bad())
	for _, result := range r.Checks {
		for _, violation := range result.Violations {
			fmt.Fprintf(&b, "VIOLATION %s: %s\n", result.Checker, violation)
		}
	}
	for _, finding := range r.Findings {
		fmt.Fprintf(&b, "FINDING %s\n", finding)
	}
	return b.String()
}

// counts shows a count of each, sorted by name.
func counts[K ~string](of map[K]int) string {
	var parts []string
	for name, n := range of {
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
