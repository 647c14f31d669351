package plugins

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	baseversion "k8s.io/component-base/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeDeclaredFeatures keeps a pod to nodes that declare, in status.declaredFeatures, what its spec asks of a kubelet
// (KEP-5328).
type NodeDeclaredFeatures struct{}

var kubernetesVersion = version.MustParse(baseversion.DefaultKubeBinaryVersion)

// Name is the plugin's name.
func (NodeDeclaredFeatures) Name() string { return "NodeDeclaredFeatures" }

// Wakes: a node that declares more.
func (NodeDeclaredFeatures) Wakes() plugin.Event { return plugin.NodeAdded | plugin.NodeFeatures }

// Filter compares what the pod asks for with what nodes declare.
func (NodeDeclaredFeatures) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	wanted := FeaturesOf(pod.Pod)
	if wanted.IsEmpty() {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		declared := slices.Sorted(slices.Values(node.Status.DeclaredFeatures))
		if met, err := wanted.IsSubset(nodedeclaredfeatures.DefaultFramework.TryMap(declared)); err == nil && met {
			return nil
		}
		return plugin.RejectForGood("node(s) didn't match Pod's required features", "it declared all features that the pod asks for")
	}
}

// FeaturesOf is what the library infers from the pod's spec. It asks for nothing if the library cannot tell, which only a
// missing version would cause.
func FeaturesOf(pod *corev1.Pod) nodedeclaredfeatures.FeatureSet {
	library := nodedeclaredfeatures.DefaultFramework
	wanted, err := library.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &pod.Spec}, kubernetesVersion)
	if err != nil {
		return library.NewFeatureSet()
	}
	return wanted
}
