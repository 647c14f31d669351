package admission

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// runtimeClass gives pods the overhead and the nodes of the class they name.
type runtimeClass struct {
	onCreate
	classes objects[*nodev1.RuntimeClass]
}

func newRuntimeClass(store *storage.Store) runtimeClass {
	return runtimeClass{classes: objectsOf[*nodev1.RuntimeClass](store, nodev1.SchemeGroupVersion.WithResource("runtimeclasses"))}
}

// Admit implements admission.MutationInterface.
func (r runtimeClass) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	class, err := r.classOf(ctx, a, pod)
	if class == nil || err != nil {
		return err
	}
	if class.Overhead != nil {
		if pod.Spec.Overhead != nil && !apiequality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return overheadDiffers(a)
		}
		pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
	}
	if class.Scheduling == nil {
		return nil
	}
	return placeByClass(a, pod, class.Scheduling)
}

// Validate implements admission.ValidationInterface.
func (r runtimeClass) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	class, err := r.classOf(ctx, a, pod)
	switch {
	case err != nil:
		return err
	case class != nil && class.Overhead != nil:
		if !apiequality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return overheadDiffers(a)
		}
	case pod.Spec.Overhead != nil:
		return admission.NewForbidden(a, errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
	}
	return nil
}

func overheadDiffers(a admission.Attributes) error {
	return admission.NewForbidden(a, errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
}

func (r runtimeClass) classOf(ctx context.Context, a admission.Attributes, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	if pod.Spec.RuntimeClassName == nil {
		return nil, nil
	}
	name := *pod.Spec.RuntimeClassName
	class, found, err := r.classes.get(ctx, "", name)
	if err == nil && !found {
		err = admission.NewForbidden(a, fmt.Errorf("pod rejected: RuntimeClass %q not found", name))
	}
	return class, err
}

func placeByClass(a admission.Attributes, pod *corev1.Pod, where *nodev1.Scheduling) error {
	for key, value := range where.NodeSelector {
		if own, ok := pod.Spec.NodeSelector[key]; ok && own != value {
			return admission.NewForbidden(
				a,
				fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, own),
			)
		}
	}
	for key, value := range where.NodeSelector {
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
	for _, t := range where.Tolerations {
		pod.Spec.Tolerations = withToleration(pod.Spec.Tolerations, t)
	}
	return nil
}

// withToleration adds a toleration, unless one tolerates as much and more; those
// that the new one covers go.
func withToleration(have []corev1.Toleration, t corev1.Toleration) []corev1.Toleration {
	var kept []corev1.Toleration
	for _, h := range have {
		if covers(h, t) {
			return have
		}
		if !covers(t, h) {
			kept = append(kept, h)
		}
	}
	return append(kept, t)
}

// covers reports whether a tolerates everything that b does.
func covers(a, b corev1.Toleration) bool {
	if apiequality.Semantic.DeepEqual(a, b) {
		return true
	}
	switch {
	case a.Key != b.Key && (a.Key != "" || a.Operator != corev1.TolerationOpExists):
		return false
	case a.Effect != b.Effect && a.Effect != "":
		return false
	case a.Effect == corev1.TaintEffectNoExecute && !lastsAsLong(a.TolerationSeconds, b.TolerationSeconds):
		return false
	}
	switch a.Operator {
	case corev1.TolerationOpEqual, "":
		return b.Operator != corev1.TolerationOpExists && a.Value == b.Value
	case corev1.TolerationOpExists:
		return true
	default:
		return false
	}
}

func lastsAsLong(a, b *int64) bool { return a == nil || b != nil && *a >= *b }
