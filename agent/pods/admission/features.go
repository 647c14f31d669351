package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	baseversion "k8s.io/component-base/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// reasonFeature is upstream's.
const reasonFeature = "PodFeatureUnsupported"

var kubernetesVersion = version.MustParse(baseversion.DefaultKubeBinaryVersion)

// features judges what the pod's spec asks of a kubelet: its node may have been named by hand.
func (n Node) features(pod *corev1.Pod) *status.Rejection {
	wanted, err := nodedeclaredfeatures.DefaultFramework.InferForPodScheduling(infoOf(pod), kubernetesVersion)
	if err != nil {
		return &status.Rejection{Reason: reasonFeature, Message: fmt.Sprintf("Failed to infer pod's feature requirements: %v", err)}
	}
	if text := n.missing(wanted); text != "" {
		return &status.Rejection{Reason: reasonFeature, Message: text}
	}
	return nil
}

// Update says which features a change of a pod asks for and the node does not declare, "" if there are none.
func (n Node) Update(old, pod *corev1.Pod) string {
	wanted, err := nodedeclaredfeatures.DefaultFramework.InferForPodUpdate(infoOf(old), infoOf(pod), kubernetesVersion)
	if err != nil {
		return ""
	}
	return n.missing(wanted)
}

// missing has upstream's words.
func (n Node) missing(wanted nodedeclaredfeatures.FeatureSet) string {
	if n.Features == nil || wanted.IsEmpty() {
		return ""
	}
	library := nodedeclaredfeatures.DefaultFramework
	match, err := library.MatchNodeFeatureSet(wanted, library.TryMap(slices.Sorted(slices.Values(n.Features))))
	switch {
	case err != nil:
		return fmt.Sprintf("Failed to match pod's feature requirements against the node: %v", err)
	case !match.IsMatch:
		return "Pod requires node features that are not available: " + strings.Join(match.UnsatisfiedRequirements, ", ")
	default:
		return ""
	}
}

func infoOf(pod *corev1.Pod) *nodedeclaredfeatures.PodInfo {
	return &nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}
}
