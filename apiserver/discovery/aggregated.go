package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// aggregated is the group's part of the one document that new clients read.
func (g *group) aggregated() apidiscoveryv2.APIGroupDiscovery {
	result := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
	for _, v := range g.versions {
		if v.remote != nil {
			result.Versions = append(result.Versions, v.remote.Version)
			continue
		}
		described := apidiscoveryv2.APIVersionDiscovery{Version: v.name, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, kind := range v.kinds {
			described.Resources = append(described.Resources, aggregatedResource(kind))
		}
		result.Versions = append(result.Versions, described)
	}
	return result
}

func aggregatedResource(kind *resource.Any) apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeNamespace
	if kind.ClusterScoped {
		scope = apidiscoveryv2.ScopeCluster
	}
	described := apidiscoveryv2.APIResourceDiscovery{
		Resource: kind.Plural, ResponseKind: responseKind(kind.GroupVersionKind), Scope: scope,
		SingularResource: kind.SingularName(), Verbs: toldVerbs(kind),
		ShortNames: kind.ShortNames, Categories: kind.Categories,
	}
	for _, sub := range subresourcesOf(kind) {
		described.Subresources = append(described.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub.Name, ResponseKind: responseKind(sub.Kind), Verbs: sub.Verbs,
		})
	}
	return described
}

func responseKind(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}
