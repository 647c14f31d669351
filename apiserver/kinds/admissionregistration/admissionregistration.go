package admissionregistration

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// category is where kubectl finds all kinds of this group.
const category = "api-extensions"

// reservedSuffix ends the names of configurations that are read from files; the API
// has none of these.
const reservedSuffix = ".static.k8s.io"

// Kinds returns the kinds of the group in the order of discovery.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(mutatingPolicies()),
		resource.Erase(mutatingPolicyBindings()),
		resource.Erase(mutatingWebhooks()),
		resource.Erase(validatingPolicies()),
		resource.Erase(validatingPolicyBindings()),
		resource.Erase(validatingWebhooks()),
	}
}

// validateNewName refuses reserved names of new objects.
func validateNewName(name string) field.ErrorList {
	if !strings.HasSuffix(name, reservedSuffix) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, fmt.Sprintf(
		"names ending with %q are reserved for static manifest-based configurations and cannot be managed via the API", reservedSuffix))}
}
