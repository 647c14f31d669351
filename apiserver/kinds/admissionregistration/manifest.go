package admissionregistration

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Manifest completes and judges an object of this group that is read from a file: as one that is created, but with a name that the API
// reserves for files.
func Manifest(obj resource.Object) error {
	for _, kind := range Kinds() {
		if reflect.TypeOf(kind.New()) != reflect.TypeOf(obj) {
			continue
		}
		if kind.Default != nil {
			kind.Default(obj)
		}
		created := obj.DeepCopyObject().(resource.Object)
		created.SetName(strings.TrimSuffix(obj.GetName(), reservedSuffix))
		errs := kind.Validate(created)
		for _, text := range validation.NameIsDNSSubdomain(created.GetName(), false) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), text))
		}
		if err := errs.ToAggregate(); err != nil {
			return fmt.Errorf("%s %q: %w", kind.GroupVersionKind.Kind, obj.GetName(), err)
		}
		return nil
	}
	return fmt.Errorf("%T is no object of this group", obj)
}
