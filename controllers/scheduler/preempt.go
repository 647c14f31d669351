package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// Upstream's words for why preemption does not help.
const (
	preemptNever      = "not eligible due to preemptionPolicy=Never."
	preemptWaiting    = "not eligible due to a terminating pod on the nominated node."
	preemptNoVictims  = "No preemption victims found for incoming pod"
	preemptNotHelpful = "Preemption is not helpful for scheduling"
)

// budget is what a PodDisruptionBudget allows right now.
type budget struct {
	namespace string
	selector  labels.Selector
	allowed   int32
	granted   map[string]metav1.Time // evictions that are paid for, by the pod's name
}

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
func (e *engine) preempt(pod *plugin.Pod, fit *FitError, budgets []budget) *eviction {
	if pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever {
		fit.Preemption = preemptNever
		return nil
	}
	if e.victimsLeaving(pod) {
		fit.Preemption = preemptWaiting
		return nil
	}
	if best := e.mildest(pod, fit, budgets); best != nil {
		fit.Preemption = fmt.Sprintf("%d pod(s) of lower priority on %s are being evicted.", len(best.victims), best.node.Name)
		fit.Hint = ""
		return best
	}
	reasons := map[string]int{preemptNoVictims: len(fit.candidates), preemptNotHelpful: fit.Nodes - len(fit.candidates)}
	for reason, n := range reasons {
		if n == 0 {
			delete(reasons, reason)
		}
	}
	fit.Preemption = fmt.Sprintf("0/%d nodes are available: %s.", fit.Nodes, histogram(reasons))
	return nil
}

// mildest compares the evictions that would help, as many as the profile wants to compare. Nodes where none helps do not
// count, and the search starts at another node each time, so no node is left out for good.
func (e *engine) mildest(pod *plugin.Pod, fit *FitError, budgets []budget) *eviction {
	var best *eviction
	n, compared := len(fit.candidates), 0
	if n == 0 || !e.cache.hasBelow(pod.Priority()) {
		return nil
	}
	start, enough := int(e.round%uint64(n)), e.profile.Preemption.Compared(n)
	for i := 0; i < n && compared < enough; i++ {
		found := e.tryOut(pod, fit.class, fit.candidates[(start+i)%n], budgets)
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
func (e *engine) tryOut(pod *plugin.Pod, c *class, node *plugin.Node, budgets []budget) *eviction {
	less := func(p *plugin.Pod) bool { return p.Priority() < pod.Priority() }
	if !slices.ContainsFunc(node.Pods, less) {
		return nil // on most nodes of a large cluster: nothing is copied for them
	}
	trial := e.withNominated(pod, node)
	defer c.restore(node)
	var lower []*plugin.Pod
	for _, p := range node.Pods {
		if less(p) {
			lower = append(lower, p)
			trial.RemovePod(p)
		}
	}
	if c.retry(trial) != nil {
		return nil
	}
	slices.SortFunc(lower, moreImportant)
	protected, free := splitByBudget(lower, budgets)
	found := &eviction{node: node}
	for i, p := range append(protected, free...) {
		trial.AddPod(p)
		if c.retry(trial) == nil {
			continue // it may stay
		}
		trial.RemovePod(p)
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

// splitByBudget separates the pods whose eviction a budget does not allow, counting down as pods are taken. A pod whose
// eviction the API has granted already costs no more; one without labels is of no budget.
func splitByBudget(pods []*plugin.Pod, budgets []budget) (protected, free []*plugin.Pod) {
	left := slices.Clone(budgets)
	for _, p := range pods {
		violates := false
		for i := range left {
			if left[i].namespace != p.Namespace || len(p.Labels) == 0 || !left[i].selector.Matches(labels.Set(p.Labels)) {
				continue
			}
			if _, paid := left[i].granted[p.Name]; paid {
				continue
			}
			left[i].allowed--
			violates = violates || left[i].allowed < 0
		}
		if violates {
			protected = append(protected, p)
		} else {
			free = append(free, p)
		}
	}
	return protected, free
}

// moreImportant orders by priority, then the longer running pod first, then by name.
func moreImportant(a, b *plugin.Pod) int {
	return cmp.Or(cmp.Compare(b.Priority(), a.Priority()), startOf(a).Compare(startOf(b).Time),
		cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
}

// startOf is when a pod started, or else was created.
func startOf(pod *plugin.Pod) metav1.Time {
	if pod.Status.StartTime != nil {
		return *pod.Status.StartTime
	}
	return pod.CreationTimestamp
}

// milderThan compares in upstream's order: budgets violated, the most important victim, the sum of priorities, the
// number of victims, and then the victims that started last.
func (v *eviction) milderThan(other *eviction) bool {
	if other == nil {
		return true
	}
	return cmp.Or(
		v.violations-other.violations,
		cmp.Compare(v.victims[0].Priority(), other.victims[0].Priority()),
		cmp.Compare(v.prioritySum(), other.prioritySum()),
		len(v.victims)-len(other.victims),
		startOf(other.victims[0]).Compare(startOf(v.victims[0]).Time),
	) < 0
}

func (v *eviction) prioritySum() int64 {
	var sum int64
	for _, p := range v.victims {
		sum += int64(p.Priority()) + 1<<31 // so that a victim never lowers the sum
	}
	return sum
}

// withNominated copies the node and adds the pods that have been promised room there and are not less important.
func (e *engine) withNominated(pod *plugin.Pod, node *plugin.Node) *plugin.Node {
	trial := node.Clone()
	for uid, n := range e.cache.nominations {
		if n.node == node.Name && uid != pod.UID && n.pod.Priority() >= pod.Priority() {
			trial.AddPod(n.pod)
		}
	}
	return trial
}

// verdict is the class's verdict, and where a node's room is promised to others, whether the pod fits beside them.
func (e *engine) verdict(pod *plugin.Pod, c *class, node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	r, wakes := c.verdict(node)
	if r != nil || len(e.cache.nominations) == 0 {
		return r, wakes
	}
	trial := e.withNominated(pod, node)
	if len(trial.Pods) == len(node.Pods) {
		return nil, 0
	}
	defer c.restore(node)
	return c.retry(trial), plugin.PodGone | plugin.PodBound
}

// retry judges a changed copy of a node. restore must follow.
func (c *class) retry(trial *plugin.Node) *plugin.Rejection {
	for _, s := range c.surveys {
		s.Observe(trial.Slot, trial)
	}
	if r, _ := c.filter(trial); r != nil {
		return r
	}
	for _, s := range c.surveyFilters {
		if r := s.survey.Filter(trial); r != nil {
			return r
		}
	}
	return nil
}

// restore makes the surveys see the real node again.
func (c *class) restore(node *plugin.Node) {
	for _, s := range c.surveys {
		s.Observe(node.Slot, node)
	}
}

// nominate promises the pod room on the node; promises to less important pods there end.
func (c *cache) nominate(pod *plugin.Pod, node string) {
	for uid, n := range c.nominations {
		if n.node == node && n.pod.Priority() < pod.Priority() {
			delete(c.nominations, uid)
		}
	}
	c.nominations[pod.UID] = &nomination{pod: pod, node: node}
}

// denominate ends the promise to a pod and tells whether there was one.
func (c *cache) denominate(uid types.UID) plugin.Event {
	if c.nominations[uid] == nil {
		return 0
	}
	delete(c.nominations, uid)
	return plugin.PodGone // its room is free for others
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
