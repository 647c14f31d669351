package plugin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Terms are the parsed pod affinity and anti-affinity of a pod.
type Terms struct {
	Affinity          []Term
	AntiAffinity      []Term
	PreferredAffinity []Term
	PreferredAnti     []Term
}

// Empty tells that the pod has no such terms.
func (t Terms) Empty() bool {
	return len(t.Affinity)+len(t.AntiAffinity)+len(t.PreferredAffinity)+len(t.PreferredAnti) == 0
}

// Term is one pod affinity term.
type Term struct {
	TopologyKey string
	Weight      int64 // 1..100, preferred terms only
	namespaces  []string
	inNamespace labels.Selector // nil: only the listed namespaces
	selector    labels.Selector
}

// Matches tells whether the term selects the pod. namespaceLabels is asked only if the term selects by them.
func (t *Term) Matches(pod *corev1.Pod, namespaceLabels func(string) labels.Set) bool {
	return t.selector.Matches(labels.Set(pod.Labels)) && t.matchesNamespace(pod.Namespace, namespaceLabels)
}

func (t *Term) matchesNamespace(namespace string, namespaceLabels func(string) labels.Set) bool {
	if slices.Contains(t.namespaces, namespace) {
		return true
	}
	if t.inNamespace == nil {
		return false
	}
	return t.inNamespace.Empty() || t.inNamespace.Matches(namespaceLabels(namespace))
}

func newTerms(pod *corev1.Pod) Terms {
	var t Terms
	a := pod.Spec.Affinity
	if a == nil {
		return t
	}
	if a.PodAffinity != nil {
		t.Affinity = requiredTerms(pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		t.PreferredAffinity = preferredTerms(pod, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		t.AntiAffinity = requiredTerms(pod, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		t.PreferredAnti = preferredTerms(pod, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return t
}

func requiredTerms(pod *corev1.Pod, in []corev1.PodAffinityTerm) []Term {
	var out []Term
	for i := range in {
		out = append(out, newTerm(pod, &in[i], 0))
	}
	return out
}

func preferredTerms(pod *corev1.Pod, in []corev1.WeightedPodAffinityTerm) []Term {
	var out []Term
	for i := range in {
		out = append(out, newTerm(pod, &in[i].PodAffinityTerm, int64(in[i].Weight)))
	}
	return out
}

func newTerm(pod *corev1.Pod, in *corev1.PodAffinityTerm, weight int64) Term {
	t := Term{TopologyKey: in.TopologyKey, Weight: weight, namespaces: in.Namespaces}
	if len(in.Namespaces) == 0 && in.NamespaceSelector == nil {
		t.namespaces = []string{pod.Namespace}
	}
	if in.NamespaceSelector != nil {
		t.inNamespace = ParseSelector(in.NamespaceSelector)
	}
	t.selector = WithLabelKeys(ParseSelector(in.LabelSelector), pod.Labels, in.MatchLabelKeys, selection.In)
	t.selector = WithLabelKeys(t.selector, pod.Labels, in.MismatchLabelKeys, selection.NotIn)
	return t
}

// ParseSelector parses a label selector. An invalid one selects nothing: the API refuses it, but a scheduler must not
// stop because of one object.
func ParseSelector(in *metav1.LabelSelector) labels.Selector {
	s, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		return labels.Nothing()
	}
	return s
}

// WithLabelKeys adds "key op the pod's own value" for every listed key that the pod carries.
func WithLabelKeys(s labels.Selector, own map[string]string, keys []string, op selection.Operator) labels.Selector {
	for _, key := range keys {
		value, ok := own[key]
		if !ok {
			continue
		}
		if r, err := labels.NewRequirement(key, op, []string{value}); err == nil {
			s = s.Add(*r)
		}
	}
	return s
}
