package statefulset

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
)

// ordinalOf is the ordinal that a name has in the set; ok is false if no pod of the set has such a name.
func ordinalOf(set *appsv1.StatefulSet, name string) (ordinal int, ok bool) {
	digits, found := strings.CutPrefix(name, set.Name+"-")
	n, err := strconv.Atoi(digits)
	if !found || err != nil || n < 0 || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

func podName(set *appsv1.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// firstOrdinal is where counting begins.
func firstOrdinal(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

func wished(set *appsv1.StatefulSet) int { return int(ptr.Deref(set.Spec.Replicas, 1)) }

// isWanted reports whether an ordinal is among those that the set asks for.
func isWanted(set *appsv1.StatefulSet, ordinal int) bool {
	first := firstOrdinal(set)
	return ordinal >= first && ordinal-first < wished(set)
}

// newPod is the pod of an ordinal after a template.
func newPod(set *appsv1.StatefulSet, template *corev1.PodTemplateSpec, revision string, ordinal int) *corev1.Pod {
	template = template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            podName(set, ordinal),
			GenerateName:    set.Name + "-",
			Namespace:       set.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{adopt.Reference(set, kind)},
		},
		Spec: template.Spec,
	}
	label(pod, ordinal)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = set.Spec.ServiceName
	pod.Spec.Volumes = volumesOf(set, pod, ordinal)
	return pod
}

// label gives the pod the labels of its identity.
func label(pod *corev1.Pod, ordinal int) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
}

// conforming is the pod as its identity and the set's claims want it; nil if it is so already.
func conforming(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int) *corev1.Pod {
	identified := pod.Labels[appsv1.StatefulSetPodNameLabel] == pod.Name
	stored := usesClaims(set, pod, ordinal)
	if identified && stored {
		return nil
	}
	pod = pod.DeepCopy()
	if !identified {
		label(pod, ordinal)
	}
	if !stored {
		pod.Spec.Volumes = volumesOf(set, pod, ordinal)
	}
	return pod
}

// revisionOf names the revision that the pod was created from.
func revisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.StatefulSetRevisionLabel] }
