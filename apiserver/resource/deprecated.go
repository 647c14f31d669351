package resource

import "k8s.io/apiserver/pkg/endpoints/deprecation"

// The version of Kubernetes by which a kind is deprecated or not.
const (
	kubernetesMajor = 1
	kubernetesMinor = 37
)

// Deprecation is what users of a kind are warned of, empty for most, and the release that will not have it, empty if none is named.
func (k *Kind[T]) Deprecation() (warning, removed string) {
	obj := k.New()
	if !deprecation.IsDeprecated(obj, kubernetesMajor, kubernetesMinor) {
		return "", ""
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return deprecation.WarningMessage(obj), deprecation.RemovedRelease(obj)
}
