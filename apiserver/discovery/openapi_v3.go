package discovery

import (
	"encoding/json"

	builderutil "k8s.io/kube-openapi/pkg/builder3/util"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// buildV3 makes the document of one group version.
func buildV3(kinds []*resource.Any, version string) ([]byte, error) {
	models, err := modelsOf(kinds, false)
	if err != nil {
		return nil, err
	}
	operations := operationsOf(kinds, models)
	document := &spec3.OpenAPI{
		Version:    "3.0.0",
		Info:       &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: version}},
		Paths:      &spec3.Paths{Paths: map[string]*spec3.Path{}},
		Components: &spec3.Components{Schemas: map[string]*spec.Schema{}},
	}
	for name, model := range reachable(operations, models) {
		model = builderutil.WrapRefs(model)
		delete(model.Extensions, extensionV2)
		document.Components.Schemas[name] = model
	}
	for _, op := range operations {
		path := document.Paths.Paths[op.path]
		if path == nil {
			path = &spec3.Path{}
			document.Paths.Paths[op.path] = path
		}
		setOperationV3(path, op)
	}
	return json.Marshal(document)
}

func setOperationV3(path *spec3.Path, op operation) {
	described := operationV3(op)
	switch op.method {
	case "get":
		path.Get = described
	case "post":
		path.Post = described
	case "put":
		path.Put = described
	case "patch":
		path.Patch = described
	case "delete":
		path.Delete = described
	}
}

func operationV3(op operation) *spec3.Operation {
	described := &spec3.Operation{OperationProps: spec3.OperationProps{
		Tags: []string{tagOf(op)}, Description: op.description, OperationId: op.id,
		Responses: responsesV3(op),
	}}
	described.Extensions = spec.Extensions{extensionAction: op.action, extensionKind: kindExtension(op.gvk)}
	for _, p := range op.pathParameters {
		described.Parameters = append(described.Parameters, parameterV3(p, "path"))
	}
	for _, p := range op.query {
		described.Parameters = append(described.Parameters, parameterV3(p, "query"))
	}
	if op.body != "" {
		types := objectTypes(op)
		if op.method == "patch" {
			types = patchTypes(op)
		}
		described.RequestBody = &spec3.RequestBody{RequestBodyProps: spec3.RequestBodyProps{
			Content: contentV3(op.body, types), Required: op.method != "delete",
		}}
	}
	return described
}

func parameterV3(p parameter, in string) *spec3.Parameter {
	return &spec3.Parameter{ParameterProps: spec3.ParameterProps{
		Name: p.name, In: in, Description: p.description, Required: in == "path",
		Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{p.kind}, UniqueItems: true}},
	}}
}

func responsesV3(op operation) *spec3.Responses {
	good := &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "OK"}}
	switch {
	case op.response == "":
		good.Content = map[string]*spec3.MediaType{"*/*": {MediaTypeProps: spec3.MediaTypeProps{Schema: spec.StringProperty()}}}
	case op.action == "list":
		good.Content = contentV3(op.response, append(objectTypes(op), streamTypes(op)...))
	default:
		good.Content = contentV3(op.response, objectTypes(op))
	}
	answers := map[int]*spec3.Response{401: {ResponseProps: spec3.ResponseProps{Description: "Unauthorized"}}}
	for _, code := range goodCodes(op) {
		answers[code] = good
	}
	return &spec3.Responses{ResponsesProps: spec3.ResponsesProps{StatusCodeResponses: answers}}
}

// goodCodes are the status codes of success: created, or accepted and still going on.
func goodCodes(op operation) []int {
	switch op.action {
	case "post":
		return []int{200, 201, 202}
	case "put", "patch":
		return []int{200, 201}
	case "delete":
		return []int{200, 202}
	}
	return []int{200}
}

func contentV3(model string, types []string) map[string]*spec3.MediaType {
	content := map[string]*spec3.MediaType{}
	for _, mediaType := range types {
		content[mediaType] = &spec3.MediaType{MediaTypeProps: spec3.MediaTypeProps{Schema: spec.RefSchema(referenceV3 + model)}}
	}
	return content
}
