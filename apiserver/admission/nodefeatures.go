package admission

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	baseversion "k8s.io/component-base/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

var kubernetesVersion = version.MustParse(baseversion.DefaultKubeBinaryVersion)

// nodeFeatures refuses a change of a pod that its node does not declare to carry out, in status.declaredFeatures (KEP-5328).
// The scheduler does the same for what a new pod asks for.
type nodeFeatures struct {
	onUpdate
	nodes objects[*corev1.Node]
}

func newNodeFeatures(store *storage.Store) nodeFeatures {
	return nodeFeatures{nodes: objectsOf[*corev1.Node](store, corev1.SchemeGroupVersion.WithResource("nodes"))}
}

// Validate implements admission.ValidationInterface.
func (f nodeFeatures) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, old, changed := changedPod(a, "", "resize")
	if !changed {
		return nil
	}
	library := nodedeclaredfeatures.DefaultFramework
	wanted, err := library.InferForPodUpdate(infoOf(old), infoOf(pod), kubernetesVersion)
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("failed to infer pod capability requirements: %w", err))
	}
	if wanted.IsEmpty() {
		return nil
	}
	node, err := nodeOf(ctx, f.nodes, pod, a)
	if err != nil {
		return err
	}
	match, err := library.MatchNode(wanted, node)
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("failed to match pod requirements against node %q: %w", node.Name, err))
	}
	if !match.IsMatch {
		return admission.NewForbidden(a, fmt.Errorf("pod update requires features %s which are not available on node %q",
			strings.Join(match.UnsatisfiedRequirements, ", "), node.Name))
	}
	return nil
}

func infoOf(pod *corev1.Pod) *nodedeclaredfeatures.PodInfo {
	return &nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}
}
