package binding

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate says what is wrong with a binding, whatever its pod is.
func Validate(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("target")
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), b.Target.Kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		return append(errs, field.Required(target.Child("name"), ""))
	}
	for _, why := range validation.NameIsDNSSubdomain(b.Target.Name, false) {
		errs = append(errs, field.Invalid(target.Child("name"), b.Target.Name, why))
	}
	return errs
}

// Apply gives the pod its node now, or refuses with a conflict.
func Apply(pod *corev1.Pod, b *corev1.Binding, now time.Time) error {
	if why := refusal(pod, b); why != "" {
		return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errors.New(why))
	}
	pod.Spec.NodeName = b.Target.Name
	pod.Status.NominatedNodeName = "" // the promise is kept: nobody has to leave room for it elsewhere
	for k, value := range b.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, k, value)
	}
	for k, value := range b.Labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, k, value)
	}
	setScheduled(pod, now)
	return nil
}

func refusal(pod *corev1.Pod, b *corev1.Binding) string {
	const precondition = "Precondition failed: %s in precondition: %v, %s in object meta: %v"
	switch {
	case b.UID != "" && b.UID != pod.UID:
		return fmt.Sprintf(precondition, "UID", b.UID, "UID", pod.UID)
	case b.ResourceVersion != "" && b.ResourceVersion != pod.ResourceVersion:
		return fmt.Sprintf(precondition, "ResourceVersion", b.ResourceVersion, "ResourceVersion", pod.ResourceVersion)
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return fmt.Sprintf("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return fmt.Sprintf("pod %v has non-empty .spec.schedulingGates", pod.Name)
	}
	return ""
}

// setScheduled replaces whatever was said about scheduling by success.
func setScheduled(pod *corev1.Pod, now time.Time) {
	done := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now), ObservedGeneration: pod.Generation,
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			pod.Status.Conditions[i] = done
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, done)
}
