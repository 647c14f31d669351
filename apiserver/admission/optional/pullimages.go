package optional

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

// pullImages makes every pod ask the registry for its images, with its own credentials: no tenant uses a private image because
// another's pod has brought it to the node.
type pullImages struct{ onWrite }

// Admit implements admission.MutationInterface.
func (pullImages) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := withNewImages(a)
	if pod == nil {
		return nil
	}
	eachImage(&pod.Spec, func(policy *corev1.PullPolicy, _ *field.Path) { *policy = corev1.PullAlways })
	return nil
}

// Validate implements admission.ValidationInterface.
func (pullImages) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := withNewImages(a)
	if pod == nil {
		return nil
	}
	var errs field.ErrorList
	eachImage(&pod.Spec, func(policy *corev1.PullPolicy, path *field.Path) {
		if *policy != corev1.PullAlways {
			errs = append(errs, field.NotSupported(path, *policy, []corev1.PullPolicy{corev1.PullAlways}))
		}
	})
	if len(errs) == 0 {
		return nil
	}
	return admission.NewForbidden(a, errs.ToAggregate())
}

// withNewImages is the pod of a request, unless that leaves its images as they are: the rest of a pod may change as before.
func withNewImages(a admission.Attributes) *corev1.Pod {
	pod := podOf(a)
	old, changed := a.GetOldObject().(*corev1.Pod)
	if pod == nil || !changed {
		return pod
	}
	had := map[string]bool{}
	eachContainer(&old.Spec, func(c *corev1.Container, _ *field.Path) { had[c.Image] = true })
	found := false
	eachContainer(&pod.Spec, func(c *corev1.Container, _ *field.Path) { found = found || !had[c.Image] })
	if !found {
		return nil
	}
	return pod
}

// eachImage calls f for when each image of a pod is pulled, those of its volumes too.
func eachImage(spec *corev1.PodSpec, f func(*corev1.PullPolicy, *field.Path)) {
	eachContainer(spec, func(c *corev1.Container, path *field.Path) { f(&c.ImagePullPolicy, path.Child("imagePullPolicy")) })
	for i, volume := range spec.Volumes {
		if volume.Image != nil {
			f(&volume.Image.PullPolicy, field.NewPath("spec", "volumes").Index(i).Child("image", "pullPolicy"))
		}
	}
}

// eachContainer calls f for each container of any kind.
func eachContainer(spec *corev1.PodSpec, f func(*corev1.Container, *field.Path)) {
	path := field.NewPath("spec")
	for i := range spec.InitContainers {
		f(&spec.InitContainers[i], path.Child("initContainers").Index(i))
	}
	for i := range spec.Containers {
		f(&spec.Containers[i], path.Child("containers").Index(i))
	}
	for i := range spec.EphemeralContainers { // the common part has a container's fields in its order
		f((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), path.Child("ephemeralContainers").Index(i))
	}
}
