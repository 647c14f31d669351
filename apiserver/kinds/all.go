package kinds

import "github.com/setpoint-io/setpoint/apiserver/resource"

// All returns the kinds in the order in which discovery lists them. The result
// is the caller's; the kinds themselves are shared by nobody.
func All() []*resource.Any {
	return []*resource.Any{
		resource.Erase(namespaces()),
		resource.Erase(configMaps()),
		resource.Erase(leases()),
	}
}
