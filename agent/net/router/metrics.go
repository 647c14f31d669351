package router

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// routesMax is how many Ingresses and routes have series of their own; what others are asked is counted as of the kind "other".
const routesMax = 1000

// Metrics count what is asked of the ports of a node. They are of all its routers; the zero value is none.
type Metrics struct {
	requests    *prometheus.CounterVec
	took        *prometheus.HistogramVec
	connections prometheus.Gauge
	streams     prometheus.Gauge
	unlogged    prometheus.Counter
	cut         prometheus.Gauge

	mu sync.RWMutex
	// routes have series of their own.
	routes map[owner]bool
}

// owner is an Ingress or route, as labels.
type owner struct{ kind, namespace, name string }

// NewMetrics are of a node that serves.
func NewMetrics() *Metrics {
	labels := []string{"kind", "namespace", "name"}
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "setpoint_router_requests_total", Help: "Requests at ports of Ingresses and Gateways that were answered, by the Ingress or route, and the code.",
		}, append(labels, "code")),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "setpoint_router_request_duration_seconds", Help: "Time from a request's headers to the end of its answer, without upgraded connections.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 60},
		}, labels),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "setpoint_router_connections", Help: "Connections of clients."}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "setpoint_router_streams", Help: "Connections of clients that are copied to a backend, for TLSRoutes.",
		}),
		unlogged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "setpoint_router_access_log_dropped_total", Help: "Requests that are not in the access log, because it was not written fast enough.",
		}),
		cut: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "setpoint_router_named_left_out", Help: "Secrets and ConfigMaps that Ingresses and Gateways name and that are not read, because too many are named.",
		}),
		routes: map[owner]bool{},
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.took, m.connections, m.streams, m.unlogged, m.cut}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
}

// keep gives routesMax of these series of their own, of each namespace as many, and ends those of others.
func (m *Metrics) keep(owners []owner) {
	routes := map[owner]bool{}
	kept, _ := shares.Divide(owners, routesMax, func(o owner) string { return o.namespace })
	for _, o := range kept {
		routes[o] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for o := range m.routes {
		if !routes[o] {
			labels := prometheus.Labels{"kind": o.kind, "namespace": o.namespace, "name": o.name}
			m.requests.DeletePartialMatch(labels)
			m.took.DeletePartialMatch(labels)
		}
	}
	m.routes = routes
}

// count adds a request; the route is nil if there was none.
func (m *Metrics) count(route *table.Route, code int, took time.Duration) {
	m.mu.RLock()
	defer m.mu.RUnlock() // so that no series comes back after keep
	o := ownerOf(route)
	if route != nil && !m.routes[o] {
		o = owner{kind: "other"}
	}
	m.requests.WithLabelValues(o.kind, o.namespace, o.name, codeLabel(code)).Inc()
	if code != http.StatusSwitchingProtocols {
		m.took.WithLabelValues(o.kind, o.namespace, o.name).Observe(took.Seconds())
	}
}

func ownerOf(route *table.Route) owner {
	switch {
	case route == nil:
		return owner{kind: "none"}
	case route.Kind == "":
		return owner{"Ingress", route.Ingress.Namespace, route.Ingress.Name}
	}
	return owner{route.Kind, route.Ingress.Namespace, route.Ingress.Name}
}

// codeLabel keeps backends from making as many series as there are numbers.
func codeLabel(code int) string {
	if http.StatusText(code) == "" {
		return "other"
	}
	return strconv.Itoa(code)
}
