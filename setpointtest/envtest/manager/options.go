package manager

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/setpoint-io/setpoint/internal/testclient"
)

// off is the address with which controller-runtime opens no port.
const off = "0"

// Cluster is that of a test: of setpointtest, or of setpointtest/beside.
type Cluster interface {
	HasWebhooks() bool
	WebhookServer() testclient.WebhookServer
}

// Options are those of a manager in a test: no port for metrics and probes, and names of controllers that are not checked, because
// several managers of one process have them. If the Config of the cluster has Webhooks, they are served where the cluster calls.
func Options(c Cluster) ctrl.Options {
	options := ctrl.Options{
		Metrics:                metricsserver.Options{BindAddress: off},
		HealthProbeBindAddress: off,
		PprofBindAddress:       off,
		Controller:             config.Controller{SkipNameValidation: new(true)},
	}
	if c.HasWebhooks() {
		at := c.WebhookServer()
		options.WebhookServer = webhook.NewServer(webhook.Options{Host: at.Host, Port: at.Port, CertDir: at.CertDir})
	}
	return options
}
