package discovery

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/builder3"
	builderutil "k8s.io/kube-openapi/pkg/builder3/util"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// buildGroupV3 makes the document of one group version.
func buildGroupV3(gv schema.GroupVersion, v *groupVersion) ([]byte, error) {
	models, err := modelsOf(v.kinds, false)
	if err != nil {
		return nil, err
	}
	shareKinds(models, []schema.GroupVersion{gv})
	return buildV3(routesOf(gv, v, models), models)
}

// buildIndexV3 makes one of the documents beside them.
func buildIndexV3(all routes) ([]byte, error) {
	models, err := Models()
	if err != nil {
		return nil, err
	}
	shareKinds(models, nil)
	return buildV3(all, models)
}

func buildV3(all routes, models map[string]*spec.Schema) ([]byte, error) {
	document, err := builder3.BuildOpenAPISpecFromRoutes([]common.RouteContainer{all}, &common.OpenAPIV3Config{
		Info: infoOf(),
		CommonResponses: map[int]*spec3.Response{
			http.StatusUnauthorized: {ResponseProps: spec3.ResponseProps{Description: "Unauthorized"}},
		},
		GetOperationIDAndTagsFromRoute: operationOf,
		Definitions:                    all.definitions(),
		SecuritySchemes: spec3.SecuritySchemes{securityName: {SecuritySchemeProps: spec3.SecuritySchemeProps{
			Type: "apiKey", Name: "authorization", In: "header", Description: securityDescription,
		}}},
	})
	if err != nil {
		return nil, err
	}
	document.Components.Schemas = map[string]*spec.Schema{}
	for name, model := range reachable(all, models) {
		model = builderutil.WrapRefs(model)
		delete(model.Extensions, extensionV2)
		document.Components.Schemas[name] = model
	}
	return json.Marshal(document)
}
