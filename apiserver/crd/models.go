package crd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	openapiv2 "k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// References of models to the published types.
const (
	referencePrefix = "#/components/schemas/"
	objectMetaModel = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

	extensionKind       = "x-kubernetes-group-version-kind"
	extensionSelectable = "x-kubernetes-selectable-fields"
	extensionEmbedded   = "x-kubernetes-embedded-resource"
	extensionPreserve   = "x-kubernetes-preserve-unknown-fields"
)

// modelName is the name of a kind's schema: com.example.stable.v1.CronTab.
func modelName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + gvk.Version + "." + gvk.Kind
}

// typeConverter understands the fields of all versions, for their ownership.
func (d *definition) typeConverter(published func() (map[string]*spec.Schema, error)) (managedfields.TypeConverter, error) {
	shared, err := published()
	if err != nil {
		return nil, err
	}
	models := maps.Clone(shared)
	for i := range d.crd.Spec.Versions {
		gvk := d.groupKind().WithVersion(d.crd.Spec.Versions[i].Name)
		if models[modelName(gvk)], err = schemaOf(d.crd, gvk, false); err != nil {
			return nil, fmt.Errorf("model of %s: %w", gvk, err)
		}
	}
	return managedfields.NewTypeConverter(models, d.crd.Spec.PreserveUnknownFields)
}

// schemaOf is the OpenAPI schema of a version as clients see it, for OpenAPI v2 what
// that can express. References are those of v3.
func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, gvk schema.GroupVersionKind, v2 bool) (*spec.Schema, error) {
	s, err := publishable(crd, gvk.Version)
	if err != nil {
		return nil, err
	}
	m := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	// With no properties at all kubectl accepts every field, with some only those.
	if s != nil && !(v2 && (s.XPreserveUnknownFields || crd.Spec.PreserveUnknownFields)) {
		if v2 {
			s = openapiv2.ToStructuralOpenAPIV2(s)
		}
		m = s.ToKubeOpenAPI()
		m.SetProperty(
			"metadata",
			objectMeta(
				"Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
			),
		)
		addTypeMeta(m)
		addEmbedded(m, v2)
	}
	if fields := selectablePaths(crd, gvk.Version); len(fields) > 0 {
		m.AddExtension(extensionSelectable, fields)
	}
	m.AddExtension(extensionKind, []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	return m, nil
}

// selectablePaths tells clients by which fields they may select.
func selectablePaths(crd *apiextensionsv1.CustomResourceDefinition, version string) []any {
	var paths []any
	for _, v := range crd.Spec.Versions {
		for _, field := range v.SelectableFields {
			if v.Name == version {
				paths = append(paths, map[string]any{"fieldPath": strings.TrimPrefix(field.JSONPath, ".")})
			}
		}
	}
	return paths
}

// publishable is the version's schema with all that holds for a field beside it, or
// nil where there is none that tools could rely on.
func publishable(crd *apiextensionsv1.CustomResourceDefinition, version string) (*structuralschema.Structural, error) {
	if v, err := apihelpers.GetSchemaForVersion(crd, version); err != nil || v == nil {
		return nil, err
	}
	props, err := internalSchema(crd, version)
	if err != nil || props == nil || validation.SchemaHasInvalidTypes(props) {
		return nil, err
	}
	s, err := structuralschema.NewStructural(props)
	if err != nil || len(structuralschema.ValidateStructural(nil, s)) > 0 {
		return nil, nil
	}
	return s.Unfold(), nil
}

func objectMeta(description string) spec.Schema {
	return *spec.RefSchema(referencePrefix + objectMetaModel).WithDescription(description)
}

func addTypeMeta(s *spec.Schema) {
	docs := metav1.TypeMeta{}.SwaggerDoc()
	for _, name := range []string{"apiVersion", "kind"} {
		s.SetProperty(name, *spec.StringProperty().WithDescription(docs[name]))
	}
}

// addEmbedded describes the metadata of objects within the object.
func addEmbedded(s *spec.Schema, v2 bool) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		addEmbedded(&property, v2)
		s.Properties[name] = property
	}
	if s.Items != nil {
		addEmbedded(s.Items.Schema, v2)
	}
	if s.AdditionalProperties != nil {
		addEmbedded(s.AdditionalProperties.Schema, v2)
	}
	if preserve, ok := s.Extensions.GetBool(extensionPreserve); ok && preserve && v2 {
		return // properties would make kubectl refuse the others
	}
	if embedded, ok := s.Extensions.GetBool(extensionEmbedded); !ok || !embedded {
		return
	}
	addTypeMeta(s)
	s.SetProperty(
		"metadata",
		objectMeta(
			"Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
		),
	)
	for _, name := range []string{"kind", "apiVersion"} {
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
}
