package plugins

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeAffinity honours spec.nodeSelector, the pod's required and preferred node affinity, and one that its profile adds for
// all pods. The zero value adds none.
type NodeAffinity struct {
	required  *nodeaffinity.NodeSelector
	preferred *nodeaffinity.PreferredSchedulingTerms
}

// NewNodeAffinity parses the affinity that is added. Errors name the field below addedAffinity.
func NewNodeAffinity(args *configv1.NodeAffinityArgs, path *field.Path) (p NodeAffinity, err error) {
	added := args.AddedAffinity
	if added == nil {
		return p, nil
	}
	path = path.Child("addedAffinity")
	if required := added.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		if p.required, err = nodeaffinity.NewNodeSelector(required,
			field.WithPath(path.Child("requiredDuringSchedulingIgnoredDuringExecution"))); err != nil {
			return p, err
		}
	}
	if preferred := added.PreferredDuringSchedulingIgnoredDuringExecution; len(preferred) > 0 {
		p.preferred, err = nodeaffinity.NewPreferredSchedulingTerms(preferred,
			field.WithPath(path.Child("preferredDuringSchedulingIgnoredDuringExecution")))
	}
	return p, err
}

// Name is the plugin's name.
func (NodeAffinity) Name() string { return "NodeAffinity" }

// Wakes: a label changed.
func (NodeAffinity) Wakes() plugin.Event { return plugin.NodeAdded | plugin.NodeLabels }

// Filter matches the node's labels and name.
func (p NodeAffinity) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	affinity := pod.Spec.Affinity
	required := affinity != nil && affinity.NodeAffinity != nil &&
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
	if len(pod.Spec.NodeSelector) == 0 && !required && p.required == nil {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		if p.required != nil && !p.required.Match(node.Node) {
			return plugin.RejectForGood("node(s) didn't match scheduler-enforced node affinity",
				"it matched the node affinity that the scheduler's configuration adds")
		}
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

// Score adds the weights of the preferred terms that match, the pod's and the added ones.
func (p NodeAffinity) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	own := preferredTerms(pod)
	switch {
	case own == nil && p.preferred == nil:
		return nil
	case own == nil:
		return func(node *plugin.Node) int64 { return p.preferred.Score(node.Node) }
	case p.preferred == nil:
		return func(node *plugin.Node) int64 { return own.Score(node.Node) }
	}
	return func(node *plugin.Node) int64 { return own.Score(node.Node) + p.preferred.Score(node.Node) }
}

// preferredTerms are the pod's; nil if it has none.
func preferredTerms(pod *plugin.Pod) *nodeaffinity.PreferredSchedulingTerms {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || len(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return nil // a preference nobody can read is no preference
	}
	return terms
}

// Normalize gives the heaviest match the best score.
func (NodeAffinity) Normalize(scores []int64) { plugin.Normalize(scores, false) }
