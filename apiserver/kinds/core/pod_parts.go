package core

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubectl/pkg/util/qos"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// podParts are the ways to change a running pod beyond its update: a guest for looking
// around, other resources.
func podParts() []resource.Part[*corev1.Pod] {
	return []resource.Part[*corev1.Pod]{
		{Name: "ephemeralcontainers", Resets: []string{"status"}, Prepare: prepareEphemeral, Validate: validateEphemeral},
		{Name: "resize", Resets: []string{"status"}, Prepare: prepareResize, Validate: validateResize},
	}
}

// restore takes all of the old pod but labels, annotations and the given spec.
func restore(pod, old *corev1.Pod, spec *corev1.PodSpec) {
	pod.Spec, pod.Status = *spec, old.Status
	metav1.ResetObjectMetaForStatus(pod, old)
	if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		pod.Generation = old.Generation + 1
	}
}

func prepareEphemeral(pod, old *corev1.Pod, _ time.Time) {
	spec := old.Spec.DeepCopy()
	spec.EphemeralContainers = pod.Spec.EphemeralContainers
	restore(pod, old, spec)
}

// validateEphemeral: guests only come; they stay in the list when they have left.
func validateEphemeral(pod, old *corev1.Pod, _ time.Time) field.ErrorList {
	if mirrored(old) {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	path := field.NewPath("spec", "ephemeralContainers")
	errs := podspec.Validate(&pod.Spec, field.NewPath("spec"))
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		at := slices.IndexFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == was.Name })
		switch {
		case at < 0:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name)))
		case !equality.Semantic.DeepEqual(*was, pod.Spec.EphemeralContainers[at]):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", was.Name,
				resource.Diff(*was, pod.Spec.EphemeralContainers[at]))))
		}
	}
	return errs
}

// mirrored pods stand for what a node runs from its own files.
func mirrored(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// prepareResize lets resources and what a change of them means through, container by
// container; if these do not fit together, the validation says so.
func prepareResize(pod, old *corev1.Pod, _ time.Time) {
	spec := old.Spec.DeepCopy()
	fits := resizeContainers(spec.Containers, pod.Spec.Containers) && resizeContainers(spec.InitContainers, pod.Spec.InitContainers)
	if !fits {
		return
	}
	if pod.Spec.Resources != nil { // clients that do not know the field leave it out
		spec.Resources = pod.Spec.Resources
	}
	podspec.CompletePodResources(spec)
	restore(pod, old, spec)
}

func resizeContainers(containers, wanted []corev1.Container) (fits bool) {
	if len(containers) != len(wanted) {
		return false
	}
	for i := range wanted {
		if containers[i].Name != wanted[i].Name {
			return false
		}
		containers[i].Resources, containers[i].ResizePolicy = wanted[i].Resources, wanted[i].ResizePolicy
	}
	return true
}

func validateResize(pod, old *corev1.Pod, _ time.Time) field.ErrorList {
	if mirrored(old) {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	path := field.NewPath("spec")
	errs := podspec.Validate(&pod.Spec, path)
	if was := qualityOf(old); was != qos.ComputePodQOS(pod) {
		errs = append(errs, field.Invalid(path, was, "Pod QOS Class may not change as a result of resizing"))
	}
	if !resizable(old) {
		errs = append(errs, field.Forbidden(path, "Pod running on node without support for resize"))
	}
	misfits := append(sameContainers("containers", pod.Spec.Containers, old.Spec.Containers),
		sameContainers("initContainers", pod.Spec.InitContainers, old.Spec.InitContainers)...)
	if len(misfits) > 0 {
		return append(errs, misfits...)
	}
	errs = append(errs, validateResizedPod(pod, old, path)...)
	errs = append(errs, validateResized(pod.Spec.InitContainers, old.Spec.InitContainers, path.Child("initContainers"))...)
	return append(errs, validateResized(pod.Spec.Containers, old.Spec.Containers, path.Child("containers"))...)
}

func qualityOf(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return qos.ComputePodQOS(pod)
}

// resizable: a node that reports what a running container has can also change it.
func resizable(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.State.Running != nil {
			return status.Resources != nil
		}
	}
	return true
}

func sameContainers(list string, containers, old []corev1.Container) field.ErrorList {
	path := field.NewPath("spec", list)
	if len(containers) != len(old) {
		return field.ErrorList{field.Forbidden(path, list+" may not be added or removed on resize")}
	}
	var errs field.ErrorList
	for i := range old {
		if containers[i].Name != old[i].Name {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"), list+" may not be renamed or reordered on resize"))
		}
	}
	return errs
}

func validateResizedPod(pod, old *corev1.Pod, path *field.Path) field.ErrorList {
	now, was := pod.Spec.Resources, old.Spec.Resources
	if now == nil {
		return nil
	}
	var errs field.ErrorList
	before := ptr.Deref(was, corev1.ResourceRequirements{})
	if lost(now.Requests, before.Requests) {
		errs = append(errs, field.Forbidden(path.Child("resources", "requests"), "pod-level resource requests cannot be removed"))
	}
	if lost(now.Limits, before.Limits) {
		errs = append(errs, field.Forbidden(path.Child("resources", "limits"), "pod-level resource limits cannot be removed"))
	}
	if !equality.Semantic.DeepEqual(others(now), others(&before)) {
		errs = append(errs, field.Forbidden(path, "only cpu and memory resources are mutable at pod-level"))
	}
	return errs
}

// validateResized: CPU and memory may change, but not vanish.
func validateResized(containers, old []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range old {
		now, was, at := &containers[i].Resources, &old[i].Resources, path.Index(i).Child("resources")
		if lost(now.Requests, was.Requests) {
			errs = append(errs, field.Forbidden(at.Child("requests"), "resource requests cannot be removed"))
		}
		if lost(now.Limits, was.Limits) {
			errs = append(errs, field.Forbidden(at.Child("limits"), "resource limits cannot be removed"))
		}
		if !equality.Semantic.DeepEqual(others(now), others(was)) ||
			!equality.Semantic.DeepEqual(containers[i].ResizePolicy, old[i].ResizePolicy) {
			errs = append(errs, field.Forbidden(field.NewPath("spec"), "only cpu and memory resources are mutable"))
		}
	}
	return errs
}

func lost(list, old corev1.ResourceList) bool {
	for name := range old {
		if _, kept := list[name]; !kept {
			return true
		}
	}
	return false
}

// others are the requirements without CPU and memory.
func others(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	rest := r.DeepCopy()
	for _, list := range []corev1.ResourceList{rest.Limits, rest.Requests} {
		delete(list, corev1.ResourceCPU)
		delete(list, corev1.ResourceMemory)
	}
	return rest
}
