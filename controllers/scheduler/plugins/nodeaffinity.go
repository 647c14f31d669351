package plugins

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeAffinity honours spec.nodeSelector and the pod's required and preferred node affinity.
type NodeAffinity struct{}

// Name is the plugin's name.
func (NodeAffinity) Name() string { return "NodeAffinity" }

// Weight is upstream's.
func (NodeAffinity) Weight() int64 { return 2 }

// Wakes: a label changed.
func (NodeAffinity) Wakes() plugin.Event { return plugin.NodeAdded | plugin.NodeLabels }

// Filter matches the node's labels and name.
func (NodeAffinity) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	affinity := pod.Spec.Affinity
	required := affinity != nil && affinity.NodeAffinity != nil &&
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
	if len(pod.Spec.NodeSelector) == 0 && !required {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		// A term that cannot be parsed matches nothing; the error itself would only say so again.
		if ok, _ := pod.NodeAffinity.Match(node.Node); ok {
			return nil
		}
		return plugin.RejectForGood("node(s) didn't match Pod's node affinity/selector", nodeAffinityRemedy(pod, node))
	}
}

// nodeAffinityRemedy names the labels the node selector misses, or the required affinity if it is that.
func nodeAffinityRemedy(pod *plugin.Pod, node *plugin.Node) string {
	var missing []string
	for key, value := range pod.Spec.NodeSelector {
		if have, ok := node.Labels[key]; !ok || have != value {
			missing = append(missing, key+"="+value)
		}
	}
	if len(missing) == 0 {
		return "it matched the pod's required node affinity"
	}
	slices.Sort(missing)
	return fmt.Sprintf("it had label %s", strings.Join(missing, ","))
}

// Score adds the weights of the preferred terms that match.
func (NodeAffinity) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || len(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return nil // a preference nobody can read is no preference
	}
	return func(node *plugin.Node) int64 { return terms.Score(node.Node) }
}

// Normalize gives the heaviest match the best score.
func (NodeAffinity) Normalize(scores []int64) { plugin.Normalize(scores, false) }
