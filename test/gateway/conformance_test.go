package gateway

import (
	"flag"
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

var version = flag.String("setpoint-version", "unreleased", "version of the cluster that is examined, for the report")

// TestConformance is upstream's suite; its own flags choose cases (-run-test=HTTPRouteWeight) and the report's place.
func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.GatewayClassName = "setpoint"
	options.ConformanceProfiles = []suite.ConformanceProfileName{
		suite.GatewayHTTPConformanceProfileName, suite.GatewayGRPCConformanceProfileName, suite.GatewayTLSConformanceProfileName,
	}
	options.Implementation = confv1.Implementation{
		Organization: "setpoint-io", Project: "setpoint", URL: "https://github.com/setpoint-io/setpoint", Version: *version,
		Contact: []string{"https://github.com/setpoint-io/setpoint/issues"},
	}
	conformance.RunConformanceWithOptions(t, options)
}
