package core

import "github.com/setpoint-io/setpoint/apiserver/resource"

// Kinds returns the kinds in the order in which discovery lists them.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(namespaces()),
		resource.Erase(nodes()),
		resource.Erase(pods()),
		resource.Erase(services()),
		resource.Erase(configMaps()),
		resource.Erase(secrets()),
		resource.Erase(serviceAccounts()),
		resource.Erase(endpoints()),
		resource.Erase(persistentVolumes()),
		resource.Erase(persistentVolumeClaims()),
		resource.Erase(replicationControllers()),
		resource.Erase(podTemplates()),
		resource.Erase(resourceQuotas()),
		resource.Erase(limitRanges()),
	}
}
