package agent

import (
	"context"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/informers"

	"github.com/setpoint-io/setpoint/agent/net/router"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// serveIngresses serves them if this node is to.
func (a *agent) serveIngresses(
	ctx context.Context, children *sync.WaitGroup, everywhere, nodes informers.SharedInformerFactory, opened func([]int),
) {
	if !a.Ingress.Any() {
		return
	}
	run, err := router.Watch(router.Config{
		Informers: everywhere, Nodes: nodes, NodeName: a.NodeName, Client: a.Client, Ports: a.Ingress, Gateways: a.Gateways,
		Reserved: a.book, Opened: opened, Metrics: a.asked, AccessLog: a.AccessLog, Listening: a.ingressListening(ctx), Logger: a.Logger,
	})
	if err != nil {
		a.Logger.Error("Ingresses are not served", "err", err)
		return
	}
	children.Go(func() { run(ctx) })
}

// collectors are what this node tells of itself in /metrics, beside its pods.
func (a *agent) collectors() []prometheus.Collector {
	var out []prometheus.Collector
	if a.Ingress.Any() {
		out = append(out, a.asked)
	}
	if a.pinning != nil {
		out = append(out, a.pinning.Collectors()...)
	}
	return out
}

// nodeLabels say besides where Ingresses are served: "" if they are not, so that an earlier label does not stay.
func (a *agent) nodeLabels() map[string]string {
	labels := maps.Clone(a.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[reserved.IngressLabel] = ""
	if a.Ingress.Any() {
		labels[reserved.IngressLabel] = reserved.IngressPortsText(a.Ingress.HTTP, a.Ingress.HTTPS)
	}
	return labels
}
