package discovery

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// modelsOf returns the models of the published types, and those of the kinds that have
// no Go type.
func modelsOf(kinds []*resource.Any, v2 bool) (map[string]*spec.Schema, error) {
	models, err := Models()
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if kind.Schema == nil {
			continue
		}
		if models[modelName(kind.New())], err = kind.Schema(v2); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", kind.GroupVersionKind, err)
		}
		list := kind.NewList()
		many := listModel(kind, list.GetObjectKind().GroupVersionKind())
		if fields, ok := models[modelName(kind.New())].Extensions[extensionSelectable]; ok {
			many.AddExtension(extensionSelectable, fields)
		}
		models[modelName(list)] = many
	}
	return models, nil
}

// customModelName is the name of a model: com.example.stable.v1.CronTab.
func customModelName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + gvk.Version + "." + gvk.Kind
}

// listModel describes the list of a kind without a Go type.
func listModel(kind *resource.Any, gvk schema.GroupVersionKind) *spec.Schema {
	docs := metav1.TypeMeta{}.SwaggerDoc()
	item := spec.RefSchema(referenceV3 + customModelName(kind.GroupVersionKind))
	model := new(spec.Schema).Typed("object", "").
		WithDescription(gvk.Kind+" is a list of "+kind.GroupVersionKind.Kind).
		WithRequired("items").
		SetProperty("items", *spec.ArrayProperty(item).WithDescription("List of " + kind.Plural + ". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md")).
		SetProperty("metadata", *spec.RefSchema(referenceV3 + metav1.ListMeta{}.OpenAPIModelName()).WithDescription("Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds")).
		SetProperty("apiVersion", *spec.StringProperty().WithDescription(docs["apiVersion"])).
		SetProperty("kind", *spec.StringProperty().WithDescription(docs["kind"]))
	model.AddExtension(extensionKind, []any{kindExtension(gvk)})
	return model
}
