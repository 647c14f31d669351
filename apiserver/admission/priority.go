package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// The classes that every cluster has, with their values: pods of the system must not
// wait for objects.
const (
	systemClusterCritical         = "system-cluster-critical"
	systemNodeCritical            = "system-node-critical"
	systemClusterCriticalPriority = int32(2000000000)
	systemNodeCriticalPriority    = int32(2000001000)
)

// priority resolves a pod's class to a number, and keeps one class the default.
type priority struct {
	onWrite
	classes objects[*schedulingv1.PriorityClass]
}

func newPriority(store *storage.Store) priority {
	return priority{classes: objectsOf[*schedulingv1.PriorityClass](store, schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"))}
}

// rank is what a class gives a pod.
type rank struct {
	class      string
	value      int32
	preemption corev1.PreemptionPolicy
}

// Admit implements admission.MutationInterface.
func (p priority) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	if a.GetOperation() == admission.Update {
		keepRank(pod, a.GetOldObject())
		return nil
	}
	r, err := p.rankOf(ctx, a, pod.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	return r.give(a, pod)
}

// keepRank: clients from before there were ranks leave them out of an update.
func keepRank(pod *corev1.Pod, old any) {
	was, ok := old.(*corev1.Pod)
	if !ok {
		return
	}
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = was.Spec.Priority
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = was.Spec.PreemptionPolicy
	}
}

func (r rank) give(a admission.Attributes, pod *corev1.Pod) error {
	if p := pod.Spec.Priority; p != nil && *p != r.value {
		return admission.NewForbidden(
			a,
			fmt.Errorf(
				"the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name",
				*p,
				r.value,
			),
		)
	}
	if p := pod.Spec.PreemptionPolicy; p != nil && *p != r.preemption {
		return admission.NewForbidden(
			a,
			fmt.Errorf(
				"the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name",
				*p,
				r.preemption,
			),
		)
	}
	pod.Spec.PriorityClassName = r.class
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &r.value, &r.preemption
	return nil
}

func (p priority) rankOf(ctx context.Context, a admission.Attributes, name string) (rank, error) {
	switch name {
	case "":
		return p.defaultRank(ctx)
	case systemClusterCritical:
		return rank{name, systemClusterCriticalPriority, corev1.PreemptLowerPriority}, nil
	case systemNodeCritical:
		return rank{name, systemNodeCriticalPriority, corev1.PreemptLowerPriority}, nil
	}
	class, found, err := p.classes.get(ctx, "", name)
	if err != nil {
		return rank{}, err
	}
	if !found {
		return rank{}, admission.NewForbidden(a, fmt.Errorf("no PriorityClass with name %v was found", name))
	}
	return rankOfClass(class), nil
}

func rankOfClass(class *schedulingv1.PriorityClass) rank {
	r := rank{class.Name, class.Value, corev1.PreemptLowerPriority}
	if class.PreemptionPolicy != nil {
		r.preemption = *class.PreemptionPolicy
	}
	return r
}

func (p priority) defaultRank(ctx context.Context) (rank, error) {
	class, err := p.defaultClass(ctx, "")
	if class == nil || err != nil {
		return rank{preemption: corev1.PreemptLowerPriority}, err
	}
	return rankOfClass(class), nil
}

// defaultClass is the lowest of those that claim to be the default, other than one
// by name.
func (p priority) defaultClass(ctx context.Context, other string) (*schedulingv1.PriorityClass, error) {
	classes, err := p.classes.in(ctx, "")
	var lowest *schedulingv1.PriorityClass
	for _, c := range classes {
		if c.GlobalDefault && c.Name != other && (lowest == nil || c.Value < lowest.Value) {
			lowest = c
		}
	}
	return lowest, err
}

// Validate implements admission.ValidationInterface.
func (p priority) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	class, ok := a.GetObject().(*schedulingv1.PriorityClass)
	if !ok || a.GetSubresource() != "" || !class.GlobalDefault {
		return nil
	}
	other, err := p.defaultClass(ctx, class.Name)
	if err != nil || other == nil {
		return err
	}
	return admission.NewForbidden(a, fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", other.Name))
}
