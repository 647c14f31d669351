package reconcile

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// BySelector files each Service under the first label that it selects by, so that ServicesFor finds a pod's among thousands.
var BySelector = Index{Name: "setpoint/selector", Keys: func(o metav1.Object) []string {
	s, ok := o.(*corev1.Service)
	if !ok || s.Spec.Selector == nil {
		return nil
	}
	if len(s.Spec.Selector) == 0 {
		return []string{s.Namespace}
	}
	key := slices.Min(slices.Collect(maps.Keys(s.Spec.Selector)))
	return []string{labelValue(s.Namespace, key, s.Spec.Selector[key])}
}}

// ServicesFor lists the Services of a namespace that select pods with such labels. The index has BySelector. A Service without a
// selector selects none, one with an empty selector all, as upstream.
func ServicesFor(services cache.Indexer, namespace string, pod labels.Set) ([]*corev1.Service, error) {
	values := []string{namespace}
	for key, value := range pod {
		values = append(values, labelValue(namespace, key, value))
	}
	var found []*corev1.Service
	for _, value := range values {
		objects, err := services.ByIndex(BySelector.Name, value)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if s, ok := o.(*corev1.Service); ok && covers(pod, s.Spec.Selector) {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

func covers(have, want map[string]string) bool {
	for key, value := range want {
		if v, ok := have[key]; !ok || v != value {
			return false
		}
	}
	return true
}
