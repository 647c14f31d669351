package discovery

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	openapiaggregator "k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Remote is a group version that another server answers for. It must not change.
type Remote struct {
	Group                          string
	GroupPriority, VersionPriority int32
	// Version is what that server offers, as it last said.
	Version apidiscoveryv2.APIVersionDiscovery
	// Schema answers requests for its OpenAPI v3 document; nil: there is none. SchemaHash is the document's; empty: the server tells none.
	SchemaHash string
	Schema     http.Handler
	// Swagger is that server's whole OpenAPI v2 document in JSON; nil: there is none.
	Swagger []byte
}

// Name is <version>.<group>, as that of an APIService.
func (r *Remote) Name() string { return r.Version.Version + "." + r.Group }

func (r *Remote) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version.Version}
}

// document is the name of its OpenAPI document.
func (r *Remote) document() string { return strings.TrimPrefix(pathOf(r.groupVersion()), "/") }

// notRemote leaves out the kinds whose version another server has taken over.
func notRemote(kinds []*resource.Any, remotes []Remote) []*resource.Any {
	if len(remotes) == 0 {
		return kinds
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(kind *resource.Any) bool {
		gv := kind.GroupVersionKind.GroupVersion()
		return slices.ContainsFunc(remotes, func(r Remote) bool { return r.groupVersion() == gv })
	})
}

// withRemotes adds what other servers say of their versions to the v2 document. One that
// cannot be understood is left out: it must not take the schemas of all others along.
func withRemotes(document *spec.Swagger, remotes []Remote) {
	for i := range remotes {
		var theirs spec.Swagger
		if remotes[i].Swagger == nil || json.Unmarshal(remotes[i].Swagger, &theirs) != nil || theirs.Paths == nil {
			continue
		}
		prefix := pathOf(remotes[i].groupVersion())
		openapiaggregator.FilterSpecByPaths(&theirs, []string{prefix, prefix + "/"})
		_ = openapiaggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(document, &theirs) // all or nothing
	}
}
