package term

import (
	"slices"

	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/setpoint-io/setpoint/apiserver/kinds/scheduling"
	"github.com/setpoint-io/setpoint/controllers/clusterobjects"
	"github.com/setpoint-io/setpoint/internal/gatewayapi/definitions"
)

// clusterObjects are what every cluster has beside its namespaces.
func (c *Config) clusterObjects(services []string) *clusterobjects.Objects {
	objects := &clusterobjects.Objects{
		PriorityClasses: scheduling.SystemPriorityClasses(),
		Levels:          slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations),
		Schemas:         slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas),
		ServiceCIDRs:    services,
		Authentication:  func() (map[string]string, error) { return c.FrontProxy.Configuration(c.Trust.CA) },
		Changed:         c.FrontProxy.Changed(),
	}
	if c.GatewayAPI {
		objects.Definitions = definitions.All
	}
	return objects
}
