package apiextensions

import "github.com/setpoint-io/setpoint/apiserver/resource"

// Kinds returns the kinds of the group in the order of discovery.
func Kinds() []*resource.Any {
	return []*resource.Any{resource.Erase(customResourceDefinitions())}
}
