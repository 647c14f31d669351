package flowcontrol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Kinds returns the kinds in the order in which discovery lists them.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(flowSchemas()),
		resource.Erase(priorityLevels()),
	}
}

// resetMeta takes the metadata of the stored object in an update of the status,
// except for who owns which field of that status.
func resetMeta(obj, old *metav1.ObjectMeta) {
	owners := obj.ManagedFields
	*obj = *old
	obj.ManagedFields = owners
}

// validateConditions: one condition of each type.
func validateConditions[T any, S ~string](conditions []T, kind func(T) S) field.ErrorList {
	var errs field.ErrorList
	seen := map[S]bool{}
	for i, condition := range conditions {
		path, name := field.NewPath("status", "conditions").Index(i).Child("type"), kind(condition)
		if seen[name] {
			errs = append(errs, field.Duplicate(path, name))
		}
		seen[name] = true
		if name == "" {
			errs = append(errs, field.Required(path, ""))
		}
	}
	return errs
}
