package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/apiserver/rest/disruption"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// budgetsOf blames the budgets that refuse the eviction of a pod, as the API would, and clears the others of its namespace.
func (e *explainer) budgetsOf(f *finding, pod *corev1.Pod) {
	budgets := list[*policyv1.PodDisruptionBudget](e, Budgets, pod.Namespace)
	guarding, why := disruption.Refusal(pod, budgets)
	for _, b := range guarding {
		if why == "" {
			f.clear(Budgets.of(b), "it allows %d disruptions", b.Status.DisruptionsAllowed)
			continue
		}
		if len(guarding) == 1 {
			f.blame(e.exhausted(b, why))
			continue
		}
		f.blame(Cause{
			Object: Budgets.of(b), What: why, Change: "let one budget alone guard the pod:",
			Command: kubectl(b.Namespace, "delete", Budgets.of(b).qualified(), b.Name),
		})
	}
	for _, b := range firstOf(budgets) {
		if !slices.Contains(guarding, b) {
			f.clear(Budgets.of(b), "it does not guard %s", Pods.of(pod))
		}
	}
}

// exhausted is a budget that allows nothing, because of the pods that are not ready or because it never does.
func (e *explainer) exhausted(b *policyv1.PodDisruptionBudget, why string) Cause {
	c := Cause{Object: Budgets.of(b), What: why}
	for _, pod := range e.guardedBy(b) {
		if isReady(pod) {
			continue
		}
		if below, held := e.because(Pods.of(pod), pod); held {
			c.Causes = append(c.Causes, below)
		}
	}
	c.Causes = atMost(c.Causes)
	if b.Status.ExpectedPods > b.Status.CurrentHealthy {
		c.Change = "the pods that it guards must become ready"
		return c
	}
	c.Change = "run more replicas than the budget wants, or let it allow one disruption:"
	spec := map[string]any{"maxUnavailable": nil, "minAvailable": max(b.Status.CurrentHealthy-1, 0)}
	if b.Spec.MaxUnavailable != nil {
		spec = map[string]any{"maxUnavailable": max(b.Status.ExpectedPods-b.Status.CurrentHealthy, 0) + 1, "minAvailable": nil}
	}
	c.Command = patch(Budgets.of(b), "merge", fields(spec, "spec"))
	return c
}

// clearBudgets clears the budgets of a namespace: loops that roll out delete pods, which no budget refuses.
func (e *explainer) clearBudgets(f *finding, namespace string) {
	for _, b := range firstOf(list[*policyv1.PodDisruptionBudget](e, Budgets, namespace)) {
		f.clear(Budgets.of(b), "budgets hold evictions, and no rollout")
	}
}

func (e *explainer) guardedBy(b *policyv1.PodDisruptionBudget) (guarded []*corev1.Pod) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil
	}
	for _, pod := range list[*corev1.Pod](e, Pods, b.Namespace) {
		if selector.Matches(labels.Set(pod.Labels)) {
			guarded = append(guarded, pod)
		}
	}
	return guarded
}

func (e *explainer) budget(name Object, b *policyv1.PodDisruptionBudget) finding {
	f := finding{}
	for _, pod := range e.guardedBy(b) {
		if _, why := disruption.Refusal(pod, []*policyv1.PodDisruptionBudget{b}); why != "" {
			f.blame(e.exhausted(b, why))
			break
		}
	}
	f.clear(name, "it guards %d pods, of which %d are healthy", b.Status.ExpectedPods, b.Status.CurrentHealthy)
	return f.conclude(name.String()+" allows no eviction", fmt.Sprintf("%s allows %d evictions", name, b.Status.DisruptionsAllowed))
}

// node explains a node: why it is not ready, and which budgets hold a drain of it.
func (e *explainer) node(name Object, node *corev1.Node) finding {
	f := finding{}
	if !nodeReady(node) {
		f.blame(Cause{Object: name, What: notReadyBecause(node), Change: "start the agent of the node"})
		return f.conclude(name.String()+" is not Ready", "")
	}
	if p := nodefirewall.Of(node); p.Any() && !node.Spec.Unschedulable {
		f.blame(blockedBy(name, p))
		return f.conclude(name.String()+" is Ready, but a firewall of its machine blocks its pods", "")
	}
	if !node.Spec.Unschedulable {
		f.clear(name, "it is Ready and takes pods")
		return f.conclude("", name.String()+" is Ready")
	}
	drained := 0
	for _, pod := range list[*corev1.Pod](e, Pods, "") {
		owner := metav1.GetControllerOfNoCopy(pod)
		if pod.Spec.NodeName != node.Name || owner != nil && owner.Kind == "DaemonSet" {
			continue
		}
		drained++
		e.drained(&f, pod)
	}
	return f.conclude(
		fmt.Sprintf("the drain of %s is held", name), fmt.Sprintf("%s is cordoned, and nothing holds a drain of its %d pods", name, drained),
	)
}

// drained blames what keeps one pod on a node that is drained.
func (e *explainer) drained(f *finding, pod *corev1.Pod) {
	name := Pods.of(pod)
	if pod.DeletionTimestamp != nil {
		if cause, held := e.because(name, pod); held {
			f.blame(cause)
		}
		return
	}
	below := finding{}
	e.budgetsOf(&below, pod)
	if len(below.causes) == 0 {
		f.clear(name, "it may be evicted")
		return
	}
	f.innocent = append(f.innocent, below.innocent...)
	f.blame(Cause{Object: name, What: "its eviction is refused", Causes: below.causes})
}
