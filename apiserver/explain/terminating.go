package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// leftMax is how many objects of a namespace are looked at.
const leftMax = 500

// terminating explains an object that is being deleted and is still there.
func (e *explainer) terminating(name Object, o metav1.Object) finding {
	f := finding{}
	for i, finalizer := range o.GetFinalizers() {
		e.finalizer(&f, name, o, i, finalizer)
	}
	switch o := o.(type) {
	case *corev1.Namespace:
		e.namespace(&f, o)
	case *corev1.Pod:
		e.endingPod(&f, name, o)
	}
	e.failing(&f, name)
	if len(o.GetFinalizers()) == 0 {
		f.clear(name, "it has no finalizers")
	}
	e.clearOwners(&f, o)
	since := o.GetDeletionTimestamp().UTC().Format("15:04:05")
	return f.conclude(name.String()+" is being deleted since "+since+" UTC", name.String()+" is being deleted, and nothing is known to hold it")
}

// clearOwners: an owner holds no deletion.
func (e *explainer) clearOwners(f *finding, o metav1.Object) {
	for _, owner := range o.GetOwnerReferences() {
		if kind, known := workloads[owner.Kind]; known {
			f.clear(kind.Named(o.GetNamespace(), owner.Name), "an owner holds no deletion")
		}
	}
}

// finalizer blames one finalizer: the loop that should remove it waits for something, or nobody here removes it.
func (e *explainer) finalizer(f *finding, name Object, o metav1.Object, index int, finalizer string) {
	cause := Cause{Object: name}
	switch finalizer {
	case "kubernetes.io/pvc-protection":
		e.inUse(f, name, cause)
		return
	case metav1.FinalizerDeleteDependents:
		cause.What = "the finalizer " + finalizer + " waits until its dependents are deleted"
		e.dependents(&cause, o)
	case metav1.FinalizerOrphanDependents, "kubernetes.io/pv-protection", "batch.kubernetes.io/job-tracking",
		"customresourcecleanup.apiextensions.k8s.io", "service.kubernetes.io/load-balancer-cleanup":
		cause.What = fmt.Sprintf("the finalizer %s is not removed yet%s", finalizer, setBy(o, finalizer))
	default:
		cause.What = fmt.Sprintf("the finalizer %s is not removed%s; no control loop of this control plane does that", finalizer, setBy(o, finalizer))
		cause.Change = "whoever set it removes it after cleaning up; if they never will:"
		cause.Command = patch(name, "json", []operation{
			{"test", fmt.Sprintf("/metadata/finalizers/%d", index), finalizer}, {"remove", fmt.Sprintf("/metadata/finalizers/%d", index), nil},
		})
	}
	f.blame(cause)
}

// setBy names the field manager that set a value, as the object's managed fields have it.
func setBy(o metav1.Object, value string) string {
	for _, m := range o.GetManagedFields() {
		if m.FieldsV1 == nil {
			continue
		}
		owned := m.FieldsV1.GetRawString()
		if strings.Contains(owned, `"v:\"`+value+`\""`) || strings.Contains(owned, `"k:{\"name\":\"`+value+`\"}"`) {
			return fmt.Sprintf(" (%s set it)", m.Manager)
		}
	}
	return ""
}

// inUse: a claim stays while pods use it.
func (e *explainer) inUse(f *finding, name Object, cause Cause) {
	users := e.usersOf(name)
	cause.What = "the finalizer kubernetes.io/pvc-protection is not removed yet"
	if len(users) == 0 {
		f.blame(cause)
		return
	}
	for _, pod := range users {
		f.blame(Cause{
			Object: Pods.of(pod), What: "the pod uses the claim, which stays as long", Change: "delete the pod, and what would make it again:",
			Command: kubectl(pod.Namespace, "delete", "pod", pod.Name),
		})
	}
}

// dependents blames those that block the deletion of their owner.
func (e *explainer) dependents(cause *Cause, owner metav1.Object) {
	for _, left := range e.Left(owner.GetNamespace(), leftMax) {
		for _, r := range left.Meta.GetOwnerReferences() {
			if r.UID != owner.GetUID() || r.BlockOwnerDeletion == nil || !*r.BlockOwnerDeletion {
				continue
			}
			if below, held := e.because(left.Object, left.Meta); held || left.Meta.GetDeletionTimestamp() == nil {
				cause.Causes = append(cause.Causes, below)
			}
		}
	}
	cause.Causes = atMost(cause.Causes)
}

// namespace blames what the loop that empties it found, and what is left in it.
func (e *explainer) namespace(f *finding, ns *corev1.Namespace) {
	name := Namespaces.Named("", ns.Name)
	for _, c := range ns.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
			f.clear(name, "%s: %s", c.Type, c.Message)
		case c.Type == corev1.NamespaceDeletionDiscoveryFailure:
			f.blame(Cause{Object: name, What: c.Message, Causes: e.deadServices(f)})
		case c.Type == corev1.NamespaceDeletionContentFailure:
			f.blame(Cause{Object: name, What: c.Message})
		}
	}
	for _, left := range e.Left(ns.Name, leftMax) {
		if left.Meta.GetDeletionTimestamp() == nil {
			continue // it is deleted soon
		}
		if cause, held := e.because(left.Object, left.Meta); held {
			f.blame(cause)
		}
	}
	for _, finalizer := range ns.Spec.Finalizers {
		if finalizer != corev1.FinalizerKubernetes {
			f.blame(Cause{Object: name, What: fmt.Sprintf("spec.finalizers has %s, which no control loop of this control plane removes", finalizer)})
		}
	}
}

// deadServices blames the APIServices that do not answer, and clears the others that are served elsewhere.
func (e *explainer) deadServices(f *finding) (dead []Cause) {
	for _, s := range list[*apiregistrationv1.APIService](e, APIServices, "") {
		if s.Spec.Service == nil {
			continue
		}
		name := APIServices.of(s)
		available := slices.IndexFunc(s.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
			return c.Type == apiregistrationv1.Available
		})
		switch {
		case available < 0:
			f.clear(name, "it was not asked yet")
		case s.Status.Conditions[available].Status == apiregistrationv1.ConditionTrue:
			f.clear(name, "it answers")
		default:
			c := s.Status.Conditions[available]
			dead = append(dead, Cause{
				Object: name, What: fmt.Sprintf("it does not answer (%s: %s), so nobody knows what of its kinds is in the namespace", c.Reason, c.Message),
				Change: "bring its server back, or, if it is gone for good:", Command: kubectl("", "delete", name.qualified(), s.Name),
			})
		}
	}
	return dead
}

// endingPod blames what the end of a pod waits for: its node's agent has to say that its containers have ended.
func (e *explainer) endingPod(f *finding, name Object, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	e.clearNode(f, pod)
	if e.Now().Before(pod.DeletionTimestamp.Time) {
		f.clear(name, "its containers have until %s UTC to end", pod.DeletionTimestamp.UTC().Format("15:04:05"))
	}
}
