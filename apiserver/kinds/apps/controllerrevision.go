package apps

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func controllerRevisions() resource.Kind[*appsv1.ControllerRevision] {
	return resource.Kind[*appsv1.ControllerRevision]{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
		Plural:           "controllerrevisions",
		New:              func() *appsv1.ControllerRevision { return &appsv1.ControllerRevision{} },
		NewList:          func() runtime.Object { return &appsv1.ControllerRevisionList{} },
		Validate:         validateControllerRevisionCreate,
		ValidateUpdate:   validateControllerRevisionUpdate,
		Columns: []resource.Column[*appsv1.ControllerRevision]{
			column.Name[*appsv1.ControllerRevision](),
			column.Text("Controller", "Controller of the object", 0, revisionController),
			column.Count("Revision", appsv1.ControllerRevision{}.SwaggerDoc()["revision"], func(revision *appsv1.ControllerRevision) int64 {
				return revision.Revision
			}),
			column.Age[*appsv1.ControllerRevision](),
		},
	}
}

// revisionController names the owner as "kind.group/name".
func revisionController(revision *appsv1.ControllerRevision) string {
	owner := metav1.GetControllerOf(revision)
	if owner == nil {
		return column.None
	}
	kind := strings.ToLower(owner.Kind)
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && gv.Group != "" {
		kind += "." + gv.Group
	}
	return fmt.Sprintf("%s/%s", kind, owner.Name)
}

// validateControllerRevisionCreate also looks into the data, which nothing changes later.
func validateControllerRevisionCreate(revision *appsv1.ControllerRevision) field.ErrorList {
	errs := validateControllerRevision(revision)
	if raw := revision.Data.Raw; len(raw) > 0 && json.Unmarshal(raw, &map[string]any{}) != nil {
		errs = append(errs, field.Required(field.NewPath("data"), "data must be a valid JSON object"))
	}
	return errs
}

func validateControllerRevision(revision *appsv1.ControllerRevision) field.ErrorList {
	var errs field.ErrorList
	if len(revision.Data.Raw) == 0 && revision.Data.Object == nil {
		errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
	}
	return append(errs, validation.ValidateNonnegativeField(revision.Revision, field.NewPath("revision"))...)
}

func validateControllerRevisionUpdate(revision, old *appsv1.ControllerRevision) field.ErrorList {
	errs := validateControllerRevision(revision)
	return append(errs, validation.ValidateImmutableField(revision.Data, old.Data, field.NewPath("data"))...)
}
