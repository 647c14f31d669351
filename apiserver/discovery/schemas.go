package discovery

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	referenceV3 = "#/components/schemas/"
	referenceV2 = "#/definitions/"

	extensionKind   = "x-kubernetes-group-version-kind"
	extensionAction = "x-kubernetes-action"
	// extensionV2 holds what a v3 schema that v2 cannot express is in v2.
	extensionV2 = "x-kubernetes-v2-schema"
)

// operationsOf lists the operations of kinds; models tells the models of subresources' kinds.
func operationsOf(kinds []*resource.Any, models map[string]*spec.Schema) []operation {
	o := kindOperations{names: namesOfKinds(models)}
	for _, kind := range kinds {
		o.add(kind)
	}
	return o.list
}

func namesOfKinds(models map[string]*spec.Schema) map[schema.GroupVersionKind]string {
	names := map[schema.GroupVersionKind]string{}
	for name, model := range models {
		list, _ := model.Extensions[extensionKind].([]any)
		for _, entry := range list {
			if gvk, ok := entry.(map[string]any); ok {
				group, _ := gvk["group"].(string)
				version, _ := gvk["version"].(string)
				kind, _ := gvk["kind"].(string)
				names[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}] = name
			}
		}
	}
	return names
}

// reachable returns the models that operations use, directly or through others.
func reachable(operations []operation, models map[string]*spec.Schema) map[string]*spec.Schema {
	found := map[string]*spec.Schema{}
	var visit func(name string)
	visit = func(name string) {
		model, ok := models[name]
		if !ok || found[name] != nil {
			return
		}
		found[name] = model
		walker := schemamutation.Walker{
			SchemaCallback: schemamutation.SchemaCallBackNoop,
			RefCallback: func(ref *spec.Ref) *spec.Ref {
				visit(strings.TrimPrefix(ref.String(), referenceV3))
				return ref
			},
		}
		walker.WalkSchema(model)
	}
	for _, op := range operations {
		visit(op.body)
		visit(op.response)
	}
	return found
}

func kindExtension(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}
