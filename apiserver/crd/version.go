package crd

import (
	"fmt"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	upstreamrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest"
)

// servedVersion is one served version of a definition.
type servedVersion struct {
	definition *definition
	spec       *apiextensionsv1.CustomResourceDefinitionVersion
	// warning is shown to everybody who uses the version, if it is deprecated.
	warning string
	rules   rules

	mu    sync.Mutex
	built *rest.Endpoints
}

func newVersion(d *definition, version *apiextensionsv1.CustomResourceDefinitionVersion) *servedVersion {
	v := &servedVersion{definition: d, spec: version, rules: newRules(d, version)}
	if version.Deprecated {
		v.warning = deprecation(d.crd, version)
	}
	return v
}

// deprecation is the definition's own warning, or one that names the best version
// that is not deprecated.
func deprecation(crd *apiextensionsv1.CustomResourceDefinition, spec *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if spec.DeprecationWarning != nil {
		return *spec.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, spec.Name, crd.Spec.Names.Kind)
	var better []string
	for _, v := range crd.Spec.Versions {
		if v.Served && !v.Deprecated && version.CompareKubeAwareVersionStrings(spec.Name, v.Name) < 0 {
			better = append(better, v.Name)
		}
	}
	if len(better) == 0 {
		return text
	}
	best := slices.MaxFunc(better, version.CompareKubeAwareVersionStrings)
	return text + fmt.Sprintf("; use %s/%s %s", crd.Spec.Group, best, crd.Spec.Names.Kind)
}

func (v *servedVersion) gvk() schema.GroupVersionKind {
	return v.definition.groupKind().WithVersion(v.spec.Name)
}

func (v *servedVersion) listKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v.definition.group(), Version: v.spec.Name, Kind: v.definition.crd.Status.AcceptedNames.ListKind}
}

// endpoints returns the handlers of the version, made at the first request.
func (v *servedVersion) endpoints(base *rest.Endpoints) (*rest.Endpoints, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.built != nil {
		return v.built, nil
	}
	if _, err := v.definition.schemas.of(v.spec.Name); err != nil {
		return nil, err
	}
	converter, err := v.definition.converter()
	if err != nil {
		return nil, err
	}
	fields, err := v.definition.fields()
	if err != nil {
		return nil, err
	}
	forms := forms{v}
	table, err := forms.table(v.definition.catalog.config.Storage)
	if err != nil {
		return nil, err
	}
	typer := objectTyper{v.definition.catalog.scheme, crdserverscheme.NewUnstructuredObjectTyper()}
	v.built, err = base.Custom(rest.Custom{
		Kind: v.kind(), Table: table, Columns: v.columns(),
		Serializer: newSerializer(v.definition, typer), Creater: creater{}, Typer: typer, Defaulter: v.definition.defaulter(),
		Convertor: converter.safe, UnsafeConvertor: converter.unsafe,
		TypeConverter: fields, Equivalents: v.definition.equivalents(), StatusVersions: v.definition.statusVersions(), Guard: v.definition.guard,
	})
	return v.built, err
}

// warned is a handler of the version, with the version's warning if it has one.
func (v *servedVersion) warned(base *rest.Endpoints, handler http.HandlerFunc) http.HandlerFunc {
	if handler == nil || v.warning == "" {
		return handler
	}
	return base.Deprecated(v.warning, "", handler)
}

// columns are those of the definition, or the age.
func (v *servedVersion) columns() upstreamrest.TableConvertor {
	columns := v.spec.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
			Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		}}
	}
	// A column that cannot be read is left out with all behind it, as upstream does.
	convertor, _ := tableconvertor.New(columns)
	return convertor
}

// verbs are what discovery tells, in upstream's order. What would change objects is left out while they are all deleted.
func verbs(crd *apiextensionsv1.CustomResourceDefinition) []string {
	if apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating) {
		return []string{"delete", "deletecollection", "get", "list", "watch"}
	}
	return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
}

// kind describes the version as built-in kinds are described.
func (v *servedVersion) kind() *resource.Any {
	names := v.definition.crd.Status.AcceptedNames
	k := resource.Kind[*unstructured.Unstructured]{
		GroupVersionKind: v.gvk(),
		Plural:           names.Plural, Singular: names.Singular,
		ShortNames: names.ShortNames, Categories: names.Categories,
		ClusterScoped: v.definition.crd.Spec.Scope == apiextensionsv1.ClusterScoped,
		New: func() *unstructured.Unstructured {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(v.gvk())
			return u
		},
		NewList: func() runtime.Object {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(v.listKind())
			return list
		},
		PrepareCreate:          v.rules.prepareCreate,
		PrepareUpdate:          v.rules.prepareUpdate,
		PrepareStatus:          v.rules.prepareStatus,
		Validate:               v.rules.validate,
		ValidateChange:         v.rules.validateUpdate,
		ValidateStatusChange:   v.rules.validateStatus,
		Warnings:               v.rules.warnings,
		SplitsStatus:           v.rules.hasStatus,
		Verbs:                  verbs(v.definition.crd),
		StorageVersion:         v.definition.servedStorageVersion(),
		RequireResourceVersion: true,
		Fields:                 selectableFields(v.spec.SelectableFields),
		Scale:                  v.scale(),
		Schema:                 func(v2 bool) (*spec.Schema, error) { return schemaOf(v.definition.crd, v.gvk(), v2) },
		SchemaID:               fmt.Sprintf("%s/%d", v.definition.crd.UID, v.definition.crd.Generation),
	}
	return resource.Erase(k)
}
