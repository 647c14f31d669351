package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Why a resize can never be carried out, as causes of the refusal.
const (
	causeNodeCapacity        metav1.CauseType = "NodeCapacity"
	causeUnsupportedPlatform metav1.CauseType = "UnsupportedPlatform"
)

// podResize refuses a resize that the pod's node could not carry out if the pod were alone on it. One that has to wait for
// other pods is the node's to judge.
type podResize struct {
	onUpdate
	nodes objects[*corev1.Node]
}

func newPodResize(store *storage.Store) podResize {
	return podResize{nodes: objectsOf[*corev1.Node](store, corev1.SchemeGroupVersion.WithResource("nodes"))}
}

// Validate implements admission.ValidationInterface.
func (r podResize) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, _, changed := changedPod(a, "resize")
	if !changed {
		return nil
	}
	node, err := nodeOf(ctx, r.nodes, pod, a)
	if err != nil {
		return err
	}
	if system, said := node.Labels[corev1.LabelOSStable]; said && system != "linux" {
		why := fmt.Errorf("pod resize is only supported on linux nodes, node %q is %q", node.Name, system)
		return withCause(admission.NewForbidden(a, why), causeUnsupportedPlatform)
	}
	if lacks := lacking(pod, node); len(lacks) > 0 {
		why := fmt.Errorf("node didn't have enough allocatable resources: %s", strings.Join(lacks, "; "))
		return withCause(admission.NewForbidden(a, why), causeNodeCapacity)
	}
	return nil
}

// lacking says, in upstream's words, what the pod asks for more of than the node has.
func lacking(pod *corev1.Pod, node *corev1.Node) (lacks []string) {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	if asked, has := requests.Cpu(), node.Status.Allocatable.Cpu(); asked.Cmp(*has) > 0 {
		lacks = append(lacks, fmt.Sprintf("cpu, requested: %d, allocatable: %d", asked.MilliValue(), has.MilliValue()))
	}
	if asked, has := requests.Memory(), node.Status.Allocatable.Memory(); asked.Cmp(*has) > 0 {
		lacks = append(lacks, fmt.Sprintf("memory, requested: %d, allocatable: %d", asked.Value(), has.Value()))
	}
	return lacks
}

func withCause(err error, cause metav1.CauseType) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return err
}

// changedPod is a pod that has a node, and whose spec changes by one of the subresources.
func changedPod(a admission.Attributes, subresources ...string) (pod, old *corev1.Pod, changed bool) {
	if a.GetResource().GroupResource() != podsResource || !slices.Contains(subresources, a.GetSubresource()) {
		return nil, nil, false
	}
	pod, isPod := a.GetObject().(*corev1.Pod)
	old, wasPod := a.GetOldObject().(*corev1.Pod)
	return pod, old, isPod && wasPod && pod.Spec.NodeName != "" && pod.Generation != old.Generation
}

func nodeOf(ctx context.Context, nodes objects[*corev1.Node], pod *corev1.Pod, a admission.Attributes) (*corev1.Node, error) {
	node, found, err := nodes.get(ctx, "", pod.Spec.NodeName)
	if err == nil && !found {
		err = admission.NewForbidden(a, fmt.Errorf("node %q not found", pod.Spec.NodeName))
	}
	return node, err
}
