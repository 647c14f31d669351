package storage

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// parametersMax and parametersBytesMax bound what a class passes on to its driver.
	parametersMax      = 512
	parametersBytesMax = 256 << 10
)

// Kinds returns the kinds in the order in which discovery lists them.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(csiDrivers()),
		resource.Erase(csiNodes()),
		resource.Erase(csiStorageCapacities()),
		resource.Erase(storageClasses()),
		resource.Erase(volumeAttachments()),
		resource.Erase(volumeAttributesClasses()),
	}
}

// validateProvisioner: upper case is allowed where it once was.
func validateProvisioner(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return rule.Required(name, path)
	}
	return rule.QualifiedName(strings.ToLower(name), path)
}

func validateDriverName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return rule.Required(name, path)
	}
	return rule.DriverName(name, path)
}

func validateParameters(parameters map[string]string, path *field.Path) field.ErrorList {
	if len(parameters) > parametersMax {
		return field.ErrorList{field.TooLong(path, "", parametersMax)}
	}
	var errs field.ErrorList
	if _, unnamed := parameters[""]; unnamed {
		errs = append(errs, field.Invalid(path, "", "field can not be empty."))
	}
	if size(parameters) > parametersBytesMax {
		errs = append(errs, field.TooLong(path, "", parametersBytesMax))
	}
	return errs
}

// size is the number of bytes in keys and values.
func size(list map[string]string) int {
	n := 0
	for key, value := range list {
		n += len(key) + len(value)
	}
	return n
}
