package term

import (
	"slices"

	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/setpoint-io/setpoint/apiserver/kinds/scheduling"
	"github.com/setpoint-io/setpoint/apiserver/rest/addresses"
	"github.com/setpoint-io/setpoint/controllers/clusterobjects"
)

// clusterObjects are what every cluster has beside its namespaces.
func (c *Config) clusterObjects() *clusterobjects.Objects {
	return &clusterobjects.Objects{
		PriorityClasses: scheduling.SystemPriorityClasses(),
		Levels:          slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations),
		Schemas:         slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas),
		ServiceCIDR:     addresses.ServiceCIDR,
		Authentication:  c.FrontProxy.Configuration(c.Trust.CA),
	}
}
