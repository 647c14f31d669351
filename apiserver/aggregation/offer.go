package aggregation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints"
	clientdiscovery "k8s.io/client-go/discovery"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

// offer is what a server last said of itself. It does not change.
type offer struct {
	versions map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery
	etag     string
	// stale: the server did not answer since.
	stale   bool
	schemas schemas
}

func (o *offer) asStale() *offer {
	return &offer{versions: o.versions, etag: o.etag, stale: true, schemas: o.schemas}
}

// same reports whether two offers are known to say the same to clients.
func (o *offer) same(other *offer) bool {
	if o.stale || other.stale {
		return o.stale == other.stale
	}
	return o.etag != "" && o.etag == other.etag && o.schemas.same(&other.schemas)
}

// fetch asks the server what it offers. If it fails the last offer stands, as stale.
func (b *backend) fetch(ctx context.Context, wanted []schema.GroupVersion, last *offer) (*offer, error) {
	versions, etag, err := b.fetchVersions(ctx, wanted, last)
	if err != nil {
		return last.asStale(), err
	}
	return &offer{versions: versions, etag: etag, schemas: last.schemas}, nil
}

// withSchemas is the offer with the schemas that the server has now.
func (b *backend) withSchemas(ctx context.Context, o *offer) *offer {
	return &offer{versions: o.versions, etag: o.etag, schemas: b.fetchSchemas(ctx, &o.schemas)}
}

// aggregatedKind is the one document with all groups.
var aggregatedKind = apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")

func (b *backend) fetchVersions(
	ctx context.Context,
	wanted []schema.GroupVersion,
	last *offer,
) (map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery, string, error) {
	a, err := b.get(ctx, answerTimeout, "/apis", clientdiscovery.AcceptV2, last.etag)
	if err != nil {
		return nil, "", err
	}
	switch whole, _ := clientdiscovery.ContentTypeIsGVK(a.contentType, aggregatedKind); {
	case a.status == http.StatusNotModified:
		return last.versions, last.etag, nil
	case a.status == http.StatusServiceUnavailable:
		return nil, "", fmt.Errorf("/apis: status %d", a.status)
	case a.status == http.StatusOK && whole:
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(a.body, &list); err != nil {
			return nil, "", err
		}
		return versionsIn(&list), a.etag, nil
	}
	versions, err := b.fetchLegacy(ctx, wanted)
	return versions, "", err
}

func versionsIn(list *apidiscoveryv2.APIGroupDiscoveryList) map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery {
	versions := map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery{}
	for _, group := range list.Items {
		for _, v := range group.Versions {
			versions[schema.GroupVersion{Group: group.Name, Version: v.Version}] = withKinds(v)
		}
	}
	return versions
}

// withKinds fills in what some clients cannot do without (kubernetes#118361).
func withKinds(v apidiscoveryv2.APIVersionDiscovery) apidiscoveryv2.APIVersionDiscovery {
	for i := range v.Resources {
		fill(&v.Resources[i].ResponseKind)
		for j := range v.Resources[i].Subresources {
			fill(&v.Resources[i].Subresources[j].ResponseKind)
		}
	}
	return v
}

func fill(kind **metav1.GroupVersionKind) {
	if *kind == nil {
		*kind = &metav1.GroupVersionKind{}
	}
}

// fetchLegacy asks a server that knows no aggregated discovery, version by version.
func (b *backend) fetchLegacy(
	ctx context.Context,
	wanted []schema.GroupVersion,
) (map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery, error) {
	versions := map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery{}
	for _, gv := range wanted {
		path := "/apis/" + gv.String()
		a, err := b.get(ctx, answerTimeout, path, runtime.ContentTypeJSON, "")
		if err != nil {
			return nil, err
		}
		if a.status != http.StatusOK {
			return nil, fmt.Errorf("%s: status %d", path, a.status)
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal(a.body, &list); err != nil {
			return nil, err
		}
		resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(list.APIResources)
		if err != nil {
			return nil, err
		}
		versions[gv] = apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Resources: resources}
	}
	return versions, nil
}

// offered is what discovery shows of a route.
func (r *route) offered() discovery.Remote {
	gv, o := versionOf(r.service), r.backend.offer.Load()
	v, known := o.versions[gv]
	v.Version, v.Freshness = gv.Version, apidiscoveryv2.DiscoveryFreshnessCurrent
	if o.stale || !known {
		v.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
	}
	answers, hash := r.backend.schemaOf(gv, &o.schemas)
	return discovery.Remote{
		Group: gv.Group, GroupPriority: r.service.Spec.GroupPriorityMinimum, VersionPriority: r.service.Spec.VersionPriority,
		Version: v, SchemaHash: hash, Schema: answers, Swagger: o.schemas.swagger,
	}
}

// schemas are the OpenAPI documents of a server.
type schemas struct {
	// hashes are those of the v3 documents by "apis/<group>/<version>". One that the server tells without a hash has an empty one.
	hashes map[string]string
	// legacy: the server has no v3 documents at all.
	legacy bool
	// swagger is the v2 document in JSON; nil: there is none.
	swagger     []byte
	swaggerETag string
	// converted answers with the v2 document as a v3 one.
	converted http.Handler
}

func (s *schemas) same(other *schemas) bool {
	return s.swaggerETag == other.swaggerETag && len(s.swagger) == len(other.swagger) && maps.Equal(s.hashes, other.hashes) &&
		s.legacy == other.legacy
}

// Collectable are the resources of other servers whose objects can be watched and
// deleted, so that they take part in garbage collection.
func (a *Aggregator) Collectable() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, remote := range a.Remotes() {
		gv := schema.GroupVersion{Group: remote.Group, Version: remote.Version.Version}
		for _, r := range remote.Version.Resources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && slices.Contains(r.Verbs, "delete") {
				all = append(all, gv.WithResource(r.Resource))
			}
		}
	}
	return all
}
