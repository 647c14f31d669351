package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/endpoints/discovery"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// storedAs says as what kind the objects of a resource are kept, where several versions share them.
type storedAs map[schema.GroupResource]schema.GroupVersionKind

// storedKinds are those of built-in kinds.
func storedKinds(groups []*group) storedAs {
	stored := storedAs{}
	for _, g := range groups {
		for _, v := range g.versions {
			for _, kind := range v.kinds {
				if kind.ToStored == nil {
					stored[kind.StorageResource()] = kind.GroupVersionKind
				}
			}
		}
	}
	return stored
}

// hash is upstream's hash of the version in which a kind's objects are kept; "" for what is only answered, and so cannot be watched.
// Migrators of storage versions compare it.
func (s storedAs) hash(kind *resource.Any) string {
	if !slices.Contains(verbsOf(kind), "watch") {
		return ""
	}
	kept := s[kind.StorageResource()]
	if kind.StorageVersion != "" {
		gv, err := schema.ParseGroupVersion(kind.StorageVersion)
		if err != nil {
			return "" // validation lets none be
		}
		kept = gv.WithKind(kind.GroupVersionKind.Kind)
	}
	return upstream.StorageVersionHash(kept.Group, kept.Version, kept.Kind)
}
