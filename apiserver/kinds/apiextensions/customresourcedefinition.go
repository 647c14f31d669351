package apiextensions

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type definition = apiextensionsv1.CustomResourceDefinition

func customResourceDefinitions() resource.Kind[*definition] {
	return resource.Kind[*definition]{
		GroupVersionKind:       apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		Plural:                 "customresourcedefinitions",
		ShortNames:             []string{"crd", "crds"},
		Categories:             []string{"api-extensions"},
		ClusterScoped:          true,
		New:                    func() *definition { return &definition{} },
		NewList:                func() runtime.Object { return &apiextensionsv1.CustomResourceDefinitionList{} },
		Default:                setDefaults,
		PrepareCreate:          func(d *definition) { noteStorageVersion(d) },
		PrepareUpdate:          func(d, _ *definition) { noteStorageVersion(d) },
		Validate:               validate,
		ValidateUpdate:         validatePair(validation.ValidateCustomResourceDefinitionUpdate),
		ValidateStatus:         validatePair(validation.ValidateUpdateCustomResourceDefinitionStatus),
		Warnings:               warnings,
		Spec:                   func(d *definition) any { return &d.Spec },
		Status:                 func(d *definition) any { return &d.Status },
		Generation:             true,
		RequireResourceVersion: true,
		Finalizing:             func(d *definition) bool { return d.DeletionTimestamp == nil },
		NoDependents:           true,
		MarkDeleted:            markDeleted,
		Columns:                columns(),
	}
}

// noteStorageVersion remembers in the status which versions may be in the store.
func noteStorageVersion(d *definition) {
	for _, v := range d.Spec.Versions {
		if v.Storage && !apihelpers.IsStoredVersion(d, v.Name) {
			d.Status.StoredVersions = append(d.Status.StoredVersions, v.Name)
			return
		}
	}
}

// markDeleted keeps a definition until its instances are gone. A deletion is never
// complete at once (Finalizing), so that this is always called.
func markDeleted(d *definition) {
	if slices.Contains(d.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	d.Finalizers = append(d.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	apihelpers.SetCRDCondition(d, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message:            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
		LastTransitionTime: metav1.NewTime(d.DeletionTimestamp.Time),
	})
}

// internal is the form that the published rules judge. It does not change d.
func internal(d *definition) (*apiextensions.CustomResourceDefinition, error) {
	var out apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d.DeepCopy(), &out, nil)
	return &out, err
}

func unreadable(err error) field.ErrorList {
	return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
}

// validate compiles CEL rules among other things; their cost is bounded by the rules
// themselves, so it needs no deadline.
func validate(d *definition) field.ErrorList {
	in, err := internal(d)
	if err != nil {
		return unreadable(err)
	}
	return append(withoutSchema(in), validation.ValidateCustomResourceDefinition(context.Background(), in)...)
}

func validatePair(
	rule func(ctx context.Context, obj, old *apiextensions.CustomResourceDefinition) field.ErrorList,
) func(d, old *definition) field.ErrorList {
	return func(d, old *definition) field.ErrorList {
		in, err := internal(d)
		if err != nil {
			return unreadable(err)
		}
		was, err := internal(old)
		if err != nil {
			return unreadable(err)
		}
		return append(withoutSchema(in), rule(context.Background(), in, was)...)
	}
}

func columns() []resource.Column[*definition] {
	text := column.Text[*definition]
	created := text("Created At", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], 0, func(d *definition) string {
		return d.CreationTimestamp.UTC().Format(time.RFC3339)
	})
	created.Type = "date"
	return []resource.Column[*definition]{
		column.Name[*definition](),
		text("Scope", "Cluster/Namespaced", 0, func(d *definition) string { return string(d.Spec.Scope) }),
		text("Versions", "Served versions", 0, servedVersions),
		created,
		text("Group", "API group", 1, func(d *definition) string { return d.Spec.Group }),
		text("Kind", "CustomResource kind", 1, func(d *definition) string { return d.Spec.Names.Kind }),
		text("ShortNames", "Short names", 1, func(d *definition) string { return strings.Join(d.Spec.Names.ShortNames, ",") }),
		{
			Name: "Established", Type: "boolean", Description: "Established status", Priority: 1,
			Cell: func(d *definition, _ time.Time) any {
				return apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established)
			},
		},
	}
}

func servedVersions(d *definition) string {
	var names []string
	for _, v := range d.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			names = append(names, v.Name+"(storage)")
		case v.Served:
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
