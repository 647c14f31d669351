package daemonset

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
)

// generationLabel counts changes of the template. Upstream's first versions knew
// by it which pods are of the present template.
const generationLabel = "pod-template-generation"

var kind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// newPod is a pod of the present template for a node.
func newPod(ds *appsv1.DaemonSet, hash, node string) *corev1.Pod {
	template := ds.Spec.Template.DeepCopy()
	labels := maps.Clone(template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
	if generation := ds.Annotations[appsv1.DeprecatedTemplateGeneration]; generation != "" {
		labels[generationLabel] = generation
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    ds.Name + "-",
			Namespace:       ds.Namespace,
			Labels:          labels,
			Annotations:     template.Annotations,
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{adopt.Reference(ds, kind)},
		},
		Spec: template.Spec,
	}
	pod.Spec.Tolerations = tolerations(&pod.Spec)
	pin(&pod.Spec, node)
	return pod
}

// pin makes the node the only one that the pod fits. The template's required node
// affinity can be replaced: the node has been found to match it.
func pin(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}
}

// nodeOf is the node that a pod is on or pinned to; empty when it is neither.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			if len(field.Values) != 1 {
				return ""
			}
			return field.Values[0]
		}
	}
	return ""
}

// current tells whether a pod is of the present template.
func current(ds *appsv1.DaemonSet, hash string, pod *corev1.Pod) bool {
	if hash != "" && pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == hash {
		return true
	}
	generation := ds.Annotations[appsv1.DeprecatedTemplateGeneration]
	return generation != "" && pod.Labels[generationLabel] == generation
}

// sortPods puts the pod that is kept first: placed ones, then the oldest.
func sortPods(pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		unplaced := func(p *corev1.Pod) int {
			if p.Spec.NodeName == "" {
				return 1
			}
			return 0
		}
		return cmp.Or(unplaced(a)-unplaced(b), a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}
