package storagemigration

import "github.com/setpoint-io/setpoint/apiserver/resource"

// Kinds returns the kinds in the order in which discovery lists them.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(migrations()),
	}
}
