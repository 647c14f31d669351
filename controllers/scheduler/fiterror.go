package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// hintNodeLimit bounds on how many nodes a remedy is looked for; with more nodes the hint may name a merely good one.
const hintNodeLimit = 256

// FitError says why a pod fits on no node, and what would make it fit.
type FitError struct {
	// Nodes is how many nodes there are.
	Nodes int
	// Refusal is a reason that no node can lift; empty if nodes were looked at.
	Refusal string
	// Reasons counts the nodes rejected for each reason.
	Reasons map[string]int
	// Hint is one sentence that names the smallest change that would help, empty if none is known.
	Hint string
	// Wakes are the events after which it is worth trying again.
	Wakes plugin.Event
	// Preemption says why evicting pods of lower priority does not help; empty if it was not tried.
	Preemption string

	class      *class
	rejections []*plugin.Rejection // by slot; nil where there is no node, or one that the pod does not name
}

// candidateCount is how many candidates there are.
func (e *FitError) candidateCount() (n int) {
	for _, r := range e.rejections {
		if r != nil && !r.Unresolvable {
			n++
		}
	}
	return n
}

// candidates are the nodes on which evicting pods might help.
func (e *FitError) candidates(nodes []*plugin.Node) []*plugin.Node {
	var found []*plugin.Node
	for slot, r := range e.rejections {
		if r != nil && !r.Unresolvable {
			found = append(found, nodes[slot])
		}
	}
	return found
}

// Error writes the message of upstream's scheduler, with the most frequent reason first, and the hint.
func (e *FitError) Error() string {
	if e.Nodes == 0 {
		return "no nodes available to schedule pods"
	}
	why := e.Refusal
	if why == "" {
		why = histogram(e.Reasons)
	}
	text := fmt.Sprintf("0/%d nodes are available: %s.", e.Nodes, why)
	if e.Preemption != "" {
		text += " preemption: " + e.Preemption
	}
	if e.Hint != "" {
		text += " " + e.Hint
	}
	return text
}

func histogram(reasons map[string]int) string {
	type line struct {
		reason string
		count  int
	}
	lines := make([]line, 0, len(reasons))
	for reason, count := range reasons {
		lines = append(lines, line{reason, count})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(b.count-a.count, strings.Compare(a.reason, b.reason))
	})
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = fmt.Sprintf("%d %s", l.count, l.reason)
	}
	return strings.Join(parts, ", ")
}

// outsidePin is the reason for all nodes that the pod does not name: upstream's for a required node affinity.
const outsidePin = "node(s) didn't match Pod's node affinity/selector"

// remedy is what would make one node fit.
type remedy struct {
	slot  int // negative: of none
	node  string
	steps []fmt.Stringer
	cost  int64
}

func newRemedy(slot int, node string, rejections []NamedRejection) remedy {
	r := remedy{slot: slot, node: node}
	for _, rejection := range rejections {
		r.steps = append(r.steps, rejection.Remedies...)
		r.cost += rejection.Cost
	}
	return r
}

// better prefers fewer steps, then the lower cost, then the name, so that the hint is always the same.
func (r remedy) better(other remedy) remedy {
	if r.node == "" || len(r.steps) == 0 {
		return other
	}
	if len(other.steps) == 0 {
		return r // rejected only because its room is promised: nothing to say about it
	}
	if cmp.Or(len(other.steps)-len(r.steps), cmp.Compare(other.cost, r.cost), strings.Compare(other.node, r.node)) < 0 {
		return other
	}
	return r
}

func (r remedy) sentence() string {
	if len(r.steps) == 0 {
		return ""
	}
	return fmt.Sprintf("It would fit on %s if %s.", r.node, joined(r.steps))
}

func joined(steps []fmt.Stringer) string {
	texts := make([]string, len(steps))
	for i, step := range steps {
		texts[i] = step.String()
	}
	return strings.Join(texts, " and ")
}
