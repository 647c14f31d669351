package consistency

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/history"
	"github.com/setpoint-io/setpoint/test/consistency/nemesis"
)

const (
	// longFault is from when on a fault is long enough for the servers to get over it before it ends, however busy the machine is.
	longFault = 15 * time.Second
	// refusedShareMax is the largest share of operations that a long fault of one server may cost: its own clients, with some to spare.
	refusedShareMax = 0.5
)

// A mark is what bounds need of an operation.
type mark struct {
	call, end int64
	refused   bool // or of unknown outcome
	wrote     bool // and was acknowledged
}

// marksOf are those of an epoch, by the time of their ends.
func marksOf(e *history.Epoch) []mark {
	marks := make([]mark, 0, len(e.Ops))
	for i := range e.Ops {
		op := &e.Ops[i]
		lost := op.Outcome == history.Refused || op.Outcome == history.Unknown
		marks = append(marks, mark{op.Call, op.Return, lost, op.Writes() && op.Outcome == history.OK})
	}
	slices.SortFunc(marks, func(a, b mark) int { return int(a.end - b.end) })
	return marks
}

// A cost is what a fault did to clients.
type cost struct {
	fault      history.Fault
	gap        time.Duration // the longest time without an acknowledged write that began in it
	served     bool          // a write that began in it was acknowledged before it ended
	operations int           // that ended in it
	refused    int           // of these
}

// share is that of the refused.
func (c *cost) share() float64 { return float64(c.refused) / float64(max(c.operations, 1)) }

// costs are those of the faults during which the clients of one epoch worked all the time.
func (r *Report) costs() []cost {
	var all []cost
	for _, fault := range r.Faults {
		for _, marks := range r.marks {
			if n := len(marks); n > 0 && marks[0].end < fault.Start && marks[n-1].end > fault.Stop {
				all = append(all, costOf(fault, marks))
			}
		}
	}
	return all
}

func costOf(fault history.Fault, marks []mark) cost {
	c, last := cost{fault: fault}, int64(0)
	for _, m := range marks {
		inside := m.end >= fault.Start && m.end <= fault.Stop
		if inside {
			c.operations++
		}
		if inside && m.refused {
			c.refused++
		}
		if !m.wrote {
			continue
		}
		c.served = c.served || inside && m.call > fault.Start
		if last > 0 && m.end > fault.Start && last < fault.Stop {
			c.gap = max(c.gap, time.Duration(m.end-last))
		}
		last = m.end
	}
	return c
}

// bound finds faults of one server that cost too much. A long one must be over for clients before it ends: writes are acknowledged
// meanwhile, and no more than refusedShareMax is refused; that is measured by the fault, not by the clock of a busy machine. With
// gapMax, the gap of all but one in a hundred of these faults, long or short, must not be longer.
func (r *Report) bound(gapMax time.Duration) {
	var gaps []time.Duration
	for _, c := range r.costs() {
		if !nemesis.OneServer(c.fault.Name) {
			continue
		}
		gaps = append(gaps, c.gap)
		switch long := time.Duration(c.fault.Stop-c.fault.Start) >= longFault; {
		case long && !c.served:
			r.find("%s (%s): no write was acknowledged while it lasted", c.fault.Name, c.fault.What)
		case long && c.share() > refusedShareMax:
			r.find("%s (%s): %d of %d operations were refused", c.fault.Name, c.fault.What, c.refused, c.operations)
		}
	}
	if slices.Sort(gaps); gapMax > 0 && len(gaps) > 0 {
		if p99 := gaps[(len(gaps)-1)*99/100]; p99 > gapMax {
			r.find("the faults of one server hold up writes for %v (p99), more than %v", p99, gapMax)
		}
	}
}

// costTable is a line for each kind of fault: how many, the longest gaps, and what was refused.
func (r *Report) costTable() string {
	kinds := map[string][]cost{}
	for _, c := range r.costs() {
		kinds[c.fault.Name] = append(kinds[c.fault.Name], c)
	}
	var lines []string
	for name, costs := range kinds {
		sum := cost{}
		for _, c := range costs {
			sum.gap = max(sum.gap, c.gap)
			sum.operations += c.operations
			sum.refused += c.refused
		}
		lines = append(lines, fmt.Sprintf("  %-20s %3d times, write gap at most %8v, %5.1f %% of %d refused or unknown\n",
			name, len(costs), sum.gap.Round(time.Millisecond), 100*sum.share(), sum.operations))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
