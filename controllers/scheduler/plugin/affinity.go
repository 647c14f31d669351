package plugin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// Terms are the parsed pod affinity and anti-affinity of a pod.
type Terms struct {
	Affinity          []*views.Term
	AntiAffinity      []*views.Term
	PreferredAffinity []*views.Term
	PreferredAnti     []*views.Term
}

// All are the terms of all kinds.
func (t Terms) All() []*views.Term {
	return slices.Concat(t.Affinity, t.AntiAffinity, t.PreferredAffinity, t.PreferredAnti)
}

// Empty tells that the pod has no such terms.
func (t Terms) Empty() bool {
	return len(t.Affinity)+len(t.AntiAffinity)+len(t.PreferredAffinity)+len(t.PreferredAnti) == 0
}

func newTerms(pod *corev1.Pod) Terms {
	var t Terms
	a := pod.Spec.Affinity
	if a == nil {
		return t
	}
	if a.PodAffinity != nil {
		t.Affinity = requiredTerms(pod, views.Requires, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		t.PreferredAffinity = preferredTerms(pod, views.Prefers, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		t.AntiAffinity = requiredTerms(pod, views.Excludes, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		t.PreferredAnti = preferredTerms(pod, views.Avoids, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return t
}

func requiredTerms(pod *corev1.Pod, kind views.Kind, in []corev1.PodAffinityTerm) []*views.Term {
	var out []*views.Term
	for i := range in {
		out = append(out, newTerm(pod, kind, &in[i], 0))
	}
	return out
}

func preferredTerms(pod *corev1.Pod, kind views.Kind, in []corev1.WeightedPodAffinityTerm) []*views.Term {
	var out []*views.Term
	for i := range in {
		out = append(out, newTerm(pod, kind, &in[i].PodAffinityTerm, int64(in[i].Weight)))
	}
	return out
}

func newTerm(pod *corev1.Pod, kind views.Kind, in *corev1.PodAffinityTerm, weight int64) *views.Term {
	q := views.Query{Namespaces: slices.Sorted(slices.Values(in.Namespaces))}
	if len(in.Namespaces) == 0 && in.NamespaceSelector == nil {
		q.Namespaces = []string{pod.Namespace}
	}
	if in.NamespaceSelector != nil {
		q.InNamespaces = ParseSelector(in.NamespaceSelector)
	}
	q.Labels = WithLabelKeys(ParseSelector(in.LabelSelector), pod.Labels, in.MatchLabelKeys, selection.In)
	q.Labels = WithLabelKeys(q.Labels, pod.Labels, in.MismatchLabelKeys, selection.NotIn)
	return views.NewTerm(q, kind, in.TopologyKey, weight)
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
