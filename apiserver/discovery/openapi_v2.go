package discovery

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// buildV2 makes the one document of older clients; index are the routes beside those of kinds.
func buildV2(kinds []*resource.Any, index routes, remotes []Remote) ([]byte, error) {
	models, err := modelsOf(kinds, true)
	if err != nil {
		return nil, err
	}
	shareKinds(models, versionsOf(kinds))
	all := slices.Clone(index)
	for _, group := range groupsOf(kinds, nil, nil) {
		for _, v := range group.versions {
			all = append(all, routesOf(group.groupVersion(v), v, models)...)
		}
	}
	document, err := builder.BuildOpenAPISpecFromRoutes([]common.RouteContainer{all}, &common.Config{
		ProtocolList: []string{"https"},
		Info:         infoOf(),
		CommonResponses: map[int]spec.Response{
			http.StatusUnauthorized: {ResponseProps: spec.ResponseProps{Description: "Unauthorized"}},
		},
		GetOperationIDAndTagsFromRoute: operationOf,
		GetDefinitions:                 func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return all.definitions() },
		SecurityDefinitions: &spec.SecurityDefinitions{securityName: {SecuritySchemeProps: spec.SecuritySchemeProps{
			Type: "apiKey", Name: "authorization", In: "header", Description: securityDescription,
		}}},
		DefaultSecurity: []map[string][]string{{securityName: {}}},
	})
	if err != nil {
		return nil, err
	}
	document.Definitions = spec.Definitions{}
	for name, model := range reachable(all, models) {
		if document.Definitions[name], err = schemaV2(model); err != nil {
			return nil, err
		}
	}
	withRemotes(document, remotes)
	return json.Marshal(document)
}

// schemaV2 says in v2 what a schema says in v3. Defaults are left out as upstream does:
// old clients take them for fields that are set.
func schemaV2(model *spec.Schema) (spec.Schema, error) {
	if replacement, ok := model.Extensions[extensionV2]; ok {
		text, err := json.Marshal(replacement)
		if err != nil {
			return spec.Schema{}, err
		}
		var simple spec.Schema
		return simple, json.Unmarshal(text, &simple)
	}
	walker := schemamutation.Walker{SchemaCallback: withoutDefault, RefCallback: toReferenceV2}
	return *walker.WalkSchema(model), nil
}

func withoutDefault(s *spec.Schema) *spec.Schema {
	if s.Default == nil {
		return s
	}
	changed := *s
	changed.Default = nil
	return &changed
}

func toReferenceV2(ref *spec.Ref) *spec.Ref {
	changed := spec.MustCreateRef(strings.Replace(ref.String(), referenceV3, referenceV2, 1))
	return &changed
}
