package discovery

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// legacy is the group as /apis lists it, without a kind of its own.
func (g *group) legacy(servers []metav1.ServerAddressByClientCIDR) metav1.APIGroup {
	result := metav1.APIGroup{Name: g.name, ServerAddressByClientCIDRs: servers}
	for _, v := range g.versions {
		result.Versions = append(result.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: g.name, Version: v.name}.String(), Version: v.name,
		})
	}
	result.PreferredVersion = result.Versions[0]
	return result
}

// withTypeMeta is the group as /apis/<group> shows it.
func withTypeMeta(group metav1.APIGroup) runtime.Object {
	group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	group.ServerAddressByClientCIDRs = nil // only the list carries them
	return &group
}

// legacy is the document of one group version.
func (v *groupVersion) legacy(gv schema.GroupVersion, stored storedAs) runtime.Object {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
	}
	for _, kind := range v.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: kind.Plural, SingularName: kind.SingularName(), Namespaced: kind.Namespaced(),
			Kind: kind.GroupVersionKind.Kind, Verbs: toldVerbs(kind),
			ShortNames: kind.ShortNames, Categories: kind.Categories, StorageVersionHash: stored.hash(kind),
		})
		for _, sub := range subresourcesOf(kind) {
			list.APIResources = append(list.APIResources, legacySubresource(kind, sub))
		}
	}
	return list
}

// legacySubresource names the group and version only where they differ from the list's.
func legacySubresource(kind *resource.Any, sub resource.Subresource) metav1.APIResource {
	described := metav1.APIResource{
		Name: kind.Plural + "/" + sub.Name, Namespaced: kind.Namespaced(), Kind: sub.Kind.Kind, Verbs: sub.Verbs,
	}
	if sub.Kind.GroupVersion() != kind.GroupVersionKind.GroupVersion() {
		described.Group, described.Version = sub.Kind.Group, sub.Kind.Version
	}
	return described
}
