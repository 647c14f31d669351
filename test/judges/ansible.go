package judges

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// ansible judges as the module kubernetes.core.k8s does with wait: true. It does not ask of a Deployment how many are updated.
func ansible(o *unstructured.Unstructured) Verdict {
	current := count(o, "observedGeneration") == o.GetGeneration()
	want := replicas(o)
	switch o.GetKind() {
	case "Deployment":
		return when(current && count(o, "replicas") == want && count(o, "availableReplicas") == want && count(o, "unavailableReplicas") == 0)
	case "DaemonSet":
		want = number(o, -1, "status", "desiredNumberScheduled")
		return when(current && count(o, "updatedNumberScheduled") == want && count(o, "numberReady") == want &&
			count(o, "numberUnavailable") == 0)
	case "StatefulSet":
		if text(o, "spec", "updateStrategy", "type") == "OnDelete" {
			return when(current && count(o, "replicas") == want)
		}
		return when(current && count(o, "replicas") == want && count(o, "readyReplicas") == want && count(o, "updatedReplicas") == want)
	}
	return Unknown
}
