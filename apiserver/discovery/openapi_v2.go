package discovery

import (
	"encoding/json"
	"strings"

	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// buildV2 makes the one document of older clients.
func buildV2(kinds []*resource.Any, remotes []Remote, version string) ([]byte, error) {
	models, err := modelsOf(kinds, true)
	if err != nil {
		return nil, err
	}
	operations := operationsOf(kinds, models)
	document := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: version}},
		Paths:       &spec.Paths{Paths: map[string]spec.PathItem{}},
		Definitions: spec.Definitions{},
	}}
	for name, model := range reachable(operations, models) {
		if document.Definitions[name], err = schemaV2(model); err != nil {
			return nil, err
		}
	}
	for _, op := range operations {
		path := document.Paths.Paths[op.path]
		setOperationV2(&path, op)
		document.Paths.Paths[op.path] = path
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

func setOperationV2(path *spec.PathItem, op operation) {
	described := operationV2(op)
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

func operationV2(op operation) *spec.Operation {
	described := &spec.Operation{OperationProps: spec.OperationProps{
		Tags: []string{tagOf(op)}, Description: op.description, ID: op.id,
		Consumes: []string{"*/*"}, Produces: objectTypes(op), Responses: responsesV2(op),
	}}
	described.Extensions = spec.Extensions{extensionAction: op.action, extensionKind: kindExtension(op.gvk)}
	if op.method == "patch" {
		described.Consumes = patchTypes(op)
	}
	for _, p := range op.pathParameters {
		described.Parameters = append(described.Parameters, parameterV2(p, "path"))
	}
	for _, p := range op.query {
		described.Parameters = append(described.Parameters, parameterV2(p, "query"))
	}
	if op.body != "" {
		described.Parameters = append(described.Parameters, spec.Parameter{ParamProps: spec.ParamProps{
			Name: "body", In: "body", Required: op.method != "delete", Schema: spec.RefSchema(referenceV2 + op.body),
		}})
	}
	return described
}

func parameterV2(p parameter, in string) spec.Parameter {
	return spec.Parameter{
		SimpleSchema:      spec.SimpleSchema{Type: p.kind},
		CommonValidations: spec.CommonValidations{UniqueItems: true},
		ParamProps:        spec.ParamProps{Name: p.name, In: in, Description: p.description, Required: in == "path"},
	}
}

func responsesV2(op operation) *spec.Responses {
	schema := spec.StringProperty()
	if op.response != "" {
		schema = spec.RefSchema(referenceV2 + op.response)
	}
	answers := map[int]spec.Response{401: {ResponseProps: spec.ResponseProps{Description: "Unauthorized"}}}
	for _, code := range goodCodes(op) {
		answers[code] = spec.Response{ResponseProps: spec.ResponseProps{Description: "OK", Schema: schema}}
	}
	return &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: answers}}
}
