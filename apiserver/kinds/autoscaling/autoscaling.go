package autoscaling

import "github.com/setpoint-io/setpoint/apiserver/resource"

// Kinds returns the kinds in the order in which discovery lists them: the preferred
// version first.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(autoscalers()),
		resource.Erase(autoscalersV1()),
	}
}
