package kinds

import (
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// All returns the kinds in the order in which discovery lists them. The result
// is the caller's; the kinds themselves are shared by nobody.
func All() []*resource.Any {
	return []*resource.Any{
		resource.Erase(namespaces()),
		resource.Erase(nodes()),
		resource.Erase(pods()),
		resource.Erase(services()),
		resource.Erase(configMaps()),
		resource.Erase(secrets()),
		resource.Erase(serviceAccounts()),
		resource.Erase(events()),
		resource.Erase(groupEvents()),
		resource.Erase(deployments()),
		resource.Erase(replicaSets()),
		resource.Erase(controllerRevisions()),
		resource.Erase(endpointSlices()),
		resource.Erase(leases()),
	}
}
