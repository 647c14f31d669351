package core

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/resource"
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
	errs := validatePodSpec(pod, path)
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if value, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror && pod.Spec.NodeName == "" {
		errs = append(
			errs,
			field.Invalid(
				field.NewPath("metadata", "annotations").Key(corev1.MirrorPodAnnotationKey),
				value,
				"must set spec.nodeName if mirror pod annotation is set",
			),
		)
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

// validatePodSpec judges what a pod's spec has to be beyond that of a template.
func validatePodSpec(pod *corev1.Pod, path *field.Path) field.ErrorList {
	errs := podspec.Validate(&pod.Spec, path)
	for name, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		for i := range containers {
			errs = append(errs, podspec.ImageSpaces(containers[i].Image, path.Child(name).Index(i).Child("image"))...)
		}
	}
	return errs
}

// validatePodUpdate: a pod is a promise to its node; little of it may change. A spec
// that nobody changes is not judged again: rules may have come since.
func validatePodUpdate(pod, old *corev1.Pod) field.ErrorList {
	errs := validateMirror(pod, old)
	if equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		return errs
	}
	path := field.NewPath("spec")
	errs = append(errs, validatePodSpec(pod, path)...)
	for _, list := range []struct {
		name     string
		now, was []corev1.Container
	}{{"containers", pod.Spec.Containers, old.Spec.Containers}, {"initContainers", pod.Spec.InitContainers, old.Spec.InitContainers}} {
		if len(list.now) != len(list.was) {
			return append(errs, field.Forbidden(path.Child(list.name), "pod updates may not add or remove containers"))
		}
		errs = append(errs, validateImages(list.now, path.Child(list.name))...)
	}
	deadline := validateDeadlineUpdate(pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))
	errs = append(errs, deadline...)
	if len(deadline) > 0 && pod.Spec.ActiveDeadlineSeconds != nil {
		return errs
	}
	errs = append(errs, validateAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateRemovedGates(pod.Spec.SchedulingGates, old.Spec.SchedulingGates, path.Child("schedulingGates"))...)
	restored := restoreUpdatable(pod, old)
	if equality.Semantic.DeepEqual(restored, &old.Spec) {
		return errs
	}
	return append(errs, field.Forbidden(path, fmt.Sprintf("pod updates may not change fields other than %s\n%v",
		podUpdatable, resource.Diff(old.Spec, *restored))))
}

// validateMirror: whether a pod mirrors one of a node's files was decided when it was created.
func validateMirror(pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("metadata", "annotations").Key(corev1.MirrorPodAnnotationKey)
	now, is := pod.Annotations[corev1.MirrorPodAnnotationKey]
	before, was := old.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case was && (!is || now != before):
		return field.ErrorList{field.Forbidden(path, "may not remove or update mirror pod annotation")}
	case is && !was:
		return field.ErrorList{field.Forbidden(path, "may not add mirror pod annotation")}
	}
	return nil
}

func validateImages(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		errs = append(errs, podspec.Image(containers[i].Image, path.Index(i).Child("image"))...)
	}
	return errs
}

func validateDeadlineUpdate(now, was *int64, path *field.Path) field.ErrorList {
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
			errs = append(
				errs,
				field.Forbidden(
					path.Index(i).Child("name"),
					fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name),
				),
			)
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
