package core

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// podUpdatable is what the message about a refused update lists.
var podUpdatable = strings.Join([]string{
	"`spec.containers[*].image`",
	"`spec.initContainers[*].image`",
	"`spec.activeDeadlineSeconds`",
	"`spec.tolerations` (only additions to existing tolerations)",
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
}, ",")

func validatePodCreate(pod *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := podspec.Validate(&pod.Spec, path)
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

// validatePodUpdate: a pod is a promise to its node; little of it may change.
func validatePodUpdate(pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	if errs := validateContainerCounts(pod, old, path); len(errs) > 0 {
		return errs
	}
	errs := validateImages(pod, path)
	errs = append(errs, validateDeadlineUpdate(pod, old, path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, validateAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateRemovedGates(pod.Spec.SchedulingGates, old.Spec.SchedulingGates, path.Child("schedulingGates"))...)
	if len(errs) > 0 {
		return errs
	}
	restored := restoreUpdatable(pod, old)
	if equality.Semantic.DeepEqual(restored, &old.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("pod updates may not change fields other than %s\n%v",
		podUpdatable, diff.Diff(*restored, old.Spec)))}
}

func validateContainerCounts(pod, old *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(pod.Spec.Containers) != len(old.Spec.Containers) {
		errs = append(errs, field.Forbidden(path.Child("containers"), "pod updates may not add or remove containers"))
	}
	if len(pod.Spec.InitContainers) != len(old.Spec.InitContainers) {
		errs = append(errs, field.Forbidden(path.Child("initContainers"), "pod updates may not add or remove containers"))
	}
	return errs
}

func validateImages(pod *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range pod.Spec.Containers {
		errs = append(errs, podspec.Image(pod.Spec.Containers[i].Image, path.Child("containers").Index(i).Child("image"))...)
	}
	for i := range pod.Spec.InitContainers {
		errs = append(errs, podspec.Image(pod.Spec.InitContainers[i].Image, path.Child("initContainers").Index(i).Child("image"))...)
	}
	return errs
}

func validateDeadlineUpdate(pod, old *corev1.Pod, path *field.Path) field.ErrorList {
	now, was := pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds
	switch {
	case now == nil && was == nil:
		return nil
	case now == nil:
		return field.ErrorList{field.Invalid(path, now, "must not update from a positive integer to nil value")}
	case *now < 0 || *now > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *now, utilvalidation.InclusiveRangeError(0, math.MaxInt32))}
	case was != nil && *was < *now:
		return field.ErrorList{field.Invalid(path, *now, "must be less than or equal to previous value")}
	}
	return nil
}

// validateAddedTolerations: old ones stay, but may last for another time.
func validateAddedTolerations(tolerations, old []corev1.Toleration, path *field.Path) field.ErrorList {
	for _, was := range old {
		kept := false
		for _, now := range tolerations {
			now.TolerationSeconds = was.TolerationSeconds
			kept = kept || now == was
		}
		if !kept {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return podspec.Tolerations(tolerations, path)
}

func validateRemovedGates(gates, old []corev1.PodSchedulingGate, path *field.Path) field.ErrorList {
	had := sets.New[string]()
	for _, gate := range old {
		had.Insert(gate.Name)
	}
	var errs field.ErrorList
	for i, gate := range gates {
		if !had.Has(gate.Name) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"), fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name)))
		}
	}
	return errs
}

// restoreUpdatable returns the new spec with the old values of what may change:
// whatever still differs may not.
func restoreUpdatable(pod, old *corev1.Pod) *corev1.PodSpec {
	spec := pod.Spec.DeepCopy()
	for i := range spec.Containers {
		spec.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range spec.InitContainers {
		spec.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	spec.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	spec.Tolerations = old.Spec.Tolerations
	spec.SchedulingGates = old.Spec.SchedulingGates
	if ptr.Deref(old.Spec.TerminationGracePeriodSeconds, 0) < 0 && ptr.Deref(spec.TerminationGracePeriodSeconds, 0) == 1 {
		spec.TerminationGracePeriodSeconds = old.Spec.TerminationGracePeriodSeconds
	}
	if len(old.Spec.SchedulingGates) > 0 {
		// A gated pod has no node yet: where it may go can still be narrowed.
		restoreNodeChoice(spec, &old.Spec)
	}
	return spec
}

// restoreNodeChoice accepts added selectors, and a node affinity where there was none.
func restoreNodeChoice(spec, old *corev1.PodSpec) {
	for key, value := range old.NodeSelector {
		if spec.NodeSelector[key] != value {
			return
		}
	}
	spec.NodeSelector = old.NodeSelector
	hadAffinity := old.Affinity != nil && old.Affinity.NodeAffinity != nil
	if hadAffinity || spec.Affinity == nil {
		return
	}
	spec.Affinity.NodeAffinity = nil
	if old.Affinity == nil && *spec.Affinity == (corev1.Affinity{}) {
		spec.Affinity = nil
	}
}

// validatePodStatus: what a node reports must be about the pod it was given.
func validatePodStatus(pod, old *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	if name := pod.Status.NominatedNodeName; name != "" {
		errs = append(errs, rule.Subdomain(name, path.Child("nominatedNodeName"))...)
	}
	if old.Status.QOSClass != "" {
		errs = append(errs, validation.ValidateImmutableField(pod.Status.QOSClass, old.Status.QOSClass, path.Child("qosClass"))...)
	}
	for i, condition := range pod.Status.Conditions {
		if systemCondition(condition.Type) {
			continue
		}
		errs = append(errs, rule.Invalid(condition.Type, utilvalidation.IsQualifiedName(string(condition.Type)), path.Child("conditions").Index(i).Child("type"))...)
	}
	for i, ip := range pod.Status.PodIPs {
		errs = append(errs, rule.IP(ip.IP, path.Child("podIPs").Index(i))...)
	}
	errs = append(errs, validateTransitions(pod.Status.ContainerStatuses, old, path.Child("containerStatuses"))...)
	return errs
}

func systemCondition(condition corev1.PodConditionType) bool {
	switch condition {
	case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady:
		return true
	}
	return false
}

// validateTransitions: a container that ended for good never runs again.
func validateTransitions(statuses []corev1.ContainerStatus, old *corev1.Pod, path *field.Path) field.ErrorList {
	if old.Spec.RestartPolicy == corev1.RestartPolicyAlways || hasRestartRules(&old.Spec) {
		return nil
	}
	var errs field.ErrorList
	for i, now := range statuses {
		for _, was := range old.Status.ContainerStatuses {
			done := was.State.Terminated
			if was.Name != now.Name || done == nil || now.State.Terminated != nil {
				continue
			}
			if old.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && done.ExitCode != 0 {
				continue
			}
			errs = append(errs, field.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return errs
}

func hasRestartRules(spec *corev1.PodSpec) bool {
	for i := range spec.Containers {
		if spec.Containers[i].RestartPolicy != nil || len(spec.Containers[i].RestartPolicyRules) > 0 {
			return true
		}
	}
	return false
}
