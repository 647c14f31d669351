package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/budgets"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// Upstream's words for why preemption does not help.
const (
	preemptNever      = "not eligible due to preemptionPolicy=Never."
	preemptWaiting    = "not eligible due to a terminating pod on the nominated node."
	preemptNoVictims  = "No preemption victims found for incoming pod"
	preemptNotHelpful = "Preemption is not helpful for scheduling"
)

// eviction is the decision to make room on a node.
type eviction struct {
	node       *plugin.Node
	victims    []*plugin.Pod // most important first
	violations int           // how many of them a disruption budget protects
}

// nomination keeps room on a node for a pod whose victims are still leaving.
type nomination struct {
	pod  *plugin.Pod
	node string
}

// preempt looks for the node on which evicting pods of lower priority does the least harm. It gives nil and the reason
// in fit.Preemption if no eviction helps. Nothing is changed. The profile must have Preemption.
func (e *engine) preempt(pod *plugin.Pod, fit *FitError, allowed []budgets.Budget) *eviction {
	if preemptsNever(pod.Pod) {
		fit.Preemption = preemptNever
		return nil
	}
	if e.victimsLeaving(pod) {
		fit.Preemption = preemptWaiting
		return nil
	}
	if best := e.mildest(pod, fit, allowed); best != nil {
		fit.Preemption = fmt.Sprintf("%d pod(s) of lower priority on %s are being evicted.", len(best.victims), best.node.Name)
		fit.Hint = ""
		return best
	}
	candidates := fit.candidateCount()
	reasons := map[string]int{preemptNoVictims: candidates, preemptNotHelpful: fit.Nodes - candidates}
	for reason, n := range reasons {
		if n == 0 {
			delete(reasons, reason)
		}
	}
	fit.Preemption = fmt.Sprintf("0/%d nodes are available: %s.", fit.Nodes, histogram(reasons))
	return nil
}

func preemptsNever(pod *corev1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
}

// mildest compares the evictions that would help, as many as the profile wants to compare. Nodes where none helps do not
// count, and the search starts at another node each time, so no node is left out for good.
func (e *engine) mildest(pod *plugin.Pod, fit *FitError, allowed []budgets.Budget) *eviction {
	var best *eviction
	if !e.cache.hasBelow(pod.Priority()) {
		return nil
	}
	candidates := fit.candidates(e.cache.nodes)
	n, compared := len(candidates), 0
	if n == 0 {
		return nil
	}
	start, enough := int(e.round%uint64(n)), e.profile.Preemption.Compared(n)
	for i := 0; i < n && compared < enough; i++ {
		found := e.tryOut(pod, fit.class, candidates[(start+i)%n], allowed)
		if found == nil {
			continue
		}
		compared++
		if found.milderThan(best) {
			best = found
		}
	}
	return best
}

// victimsLeaving tells that pods evicted for this pod have not left its nominated node yet.
func (e *engine) victimsLeaving(pod *plugin.Pod) bool {
	n := e.cache.nominations[pod.UID]
	if n == nil {
		return false
	}
	slot, ok := e.cache.slots[n.node]
	return ok && slices.ContainsFunc(e.cache.nodes[slot].Pods, func(p *plugin.Pod) bool {
		return p.Priority() < pod.Priority() && (p.DeletionTimestamp != nil || e.cache.evicting[p.UID])
	})
}

// tryOut finds the pods to evict from one node, as few and as unimportant as possible; nil if the pod would not fit
// even then.
func (e *engine) tryOut(pod *plugin.Pod, c *class, node *plugin.Node, allowed []budgets.Budget) *eviction {
	if !node.HasBelow(pod.Priority()) {
		return nil // on most nodes of a large cluster: nothing is copied for them
	}
	trial := e.withNominated(pod, c, node)
	defer trial.end()
	var lower []*plugin.Pod
	for _, p := range node.Pods {
		if p.Priority() < pod.Priority() {
			lower = append(lower, p)
			trial.remove(p)
		}
	}
	if trial.judge() != nil {
		return nil
	}
	slices.SortFunc(lower, moreImportant)
	protected, free := budgets.Split(lower, allowed)
	found := &eviction{node: node}
	for i, p := range append(protected, free...) {
		trial.add(p)
		if trial.judge() == nil {
			continue // it may stay
		}
		trial.remove(p)
		found.victims = append(found.victims, p)
		if i < len(protected) {
			found.violations++
		}
	}
	if len(found.victims) == 0 {
		return nil
	}
	slices.SortFunc(found.victims, moreImportant)
	return found
}

// moreImportant orders by priority, then the longer running pod first, then by name.
func moreImportant(a, b *plugin.Pod) int {
	return cmp.Or(cmp.Compare(b.Priority(), a.Priority()), compareStarts(a, b), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
}

// compareStarts orders by when pods started. Those that have not started come last, by their age.
func compareStarts(a, b *plugin.Pod) int {
	switch from, to := a.Status.StartTime, b.Status.StartTime; {
	case from == nil && to == nil:
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	case from == nil:
		return 1
	case to == nil:
		return -1
	default:
		return from.Compare(to.Time)
	}
}

// milderThan tells whether the eviction does less harm than the other, or there is no other.
func (v *eviction) milderThan(other *eviction) bool {
	return other == nil || v.compare(other) < 0
}

// compare puts the milder one first. It goes by upstream's order: budgets violated, the most important victim, the sum of
// priorities, the number of victims, and then the victims that started last.
func (v *eviction) compare(other *eviction) int {
	return cmp.Or(
		v.violations-other.violations,
		cmp.Compare(v.victims[0].Priority(), other.victims[0].Priority()),
		cmp.Compare(v.prioritySum(), other.prioritySum()),
		len(v.victims)-len(other.victims),
		compareStarts(other.victims[0], v.victims[0]),
	)
}

func (v *eviction) prioritySum() int64 {
	var sum int64
	for _, p := range v.victims {
		sum += int64(p.Priority()) + 1<<31 // so that a victim never lowers the sum
	}
	return sum
}

// trial is what if other pods were on a node.
type trial struct {
	class *class
	views *views.Views          // nil if the class asks nothing of them
	node  *plugin.Node          // a copy
	moved map[*plugin.Pod]int64 // how often more or less each pod counts than it does
}

// try begins a trial; end must follow.
func (e *engine) try(c *class, node *plugin.Node) *trial {
	t := &trial{class: c, node: node.Clone()}
	if len(c.surveyFilters) > 0 {
		t.views, t.moved = e.cache.views, map[*plugin.Pod]int64{}
	}
	return t
}

func (t *trial) add(p *plugin.Pod) {
	t.node.AddPod(p)
	if t.views != nil {
		t.views.Add(t.node.Slot, p.Member)
		t.moved[p]++
	}
}

func (t *trial) remove(p *plugin.Pod) {
	t.node.RemovePod(p)
	if t.views != nil {
		t.views.Remove(t.node.Slot, p.Member)
		t.moved[p]--
	}
}

// judge says whether a pod of the class fits as things are in the trial.
func (t *trial) judge() *plugin.Rejection {
	r, _ := t.class.shape.filter(t.node)
	if r == nil {
		r, _ = t.class.ask(t.node)
	}
	return r
}

// end makes the views count what is there.
func (t *trial) end() {
	for p, n := range t.moved {
		if n > 0 {
			t.views.Remove(t.node.Slot, p.Member)
		} else if n < 0 {
			t.views.Add(t.node.Slot, p.Member)
		}
	}
}

// withNominated begins a trial with the pods that have been promised room there and are not less important.
func (e *engine) withNominated(pod *plugin.Pod, c *class, node *plugin.Node) *trial {
	t := e.try(c, node)
	for uid, n := range e.cache.promised[node.Name] {
		if uid != pod.UID && n.pod.Priority() >= pod.Priority() {
			t.add(n.pod)
		}
	}
	return t
}

// verdict is the class's verdict, and where a node's room is promised to others, whether the pod fits beside them.
func (e *engine) verdict(pod *plugin.Pod, c *class, node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	r, wakes := c.verdict(node)
	if r != nil || len(e.cache.promised) == 0 || len(e.cache.promised[node.Name]) == 0 {
		return r, wakes
	}
	t := e.withNominated(pod, c, node)
	defer t.end()
	if len(t.node.Pods) == len(node.Pods) {
		return nil, 0
	}
	return t.judge(), plugin.PodGone | plugin.PodBound
}

// nominate promises the pod room on the node. Promises to less important pods there end; it gives those pods.
func (c *cache) nominate(pod *plugin.Pod, node string) (lost []*plugin.Pod) {
	c.denominate(pod.UID)
	for uid, n := range c.promised[node] {
		if n.pod.Priority() < pod.Priority() {
			c.denominate(uid)
			lost = append(lost, n.pod)
		}
	}
	if c.promised[node] == nil {
		c.promised[node] = map[types.UID]*nomination{}
	}
	n := &nomination{pod: pod, node: node}
	c.nominations[pod.UID], c.promised[node][pod.UID] = n, n
	c.promiseChanged(node)
	return lost
}

// denominate ends the promise to a pod and tells whether there was one.
func (c *cache) denominate(uid types.UID) plugin.Event {
	n := c.nominations[uid]
	if n == nil {
		return 0
	}
	delete(c.nominations, uid)
	if delete(c.promised[n.node], uid); len(c.promised[n.node]) == 0 {
		delete(c.promised, n.node)
	}
	c.promiseChanged(n.node)
	return plugin.PodGone // its room is free for others
}

// promiseChanged has those look again at a node who failed there, or fit.
func (c *cache) promiseChanged(node string) {
	if slot, known := c.slots[node]; known {
		c.changed(slot)
	}
}

// hasBelow tells whether any placed pod has a lower priority.
func (c *cache) hasBelow(priority int32) bool {
	for p, n := range c.priorities {
		if p < priority && n > 0 {
			return true
		}
	}
	return false
}
