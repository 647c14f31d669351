package discovery

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// indicators are what /metrics/slis shows: how health checks ended, under upstream's names (KEP-3466).
type indicators struct {
	last    *prometheus.GaugeVec
	total   *prometheus.CounterVec
	handler http.Handler
}

func newIndicators() *indicators {
	i := &indicators{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "Whether a health check passed when it was last asked: 1 or 0.",
		}, []string{"name", "type"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total", Help: "How often a health check was asked, by what it said.",
		}, []string{"name", "type", "status"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(i.last, i.total)
	i.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return i
}

// observe notes the result of a check that was asked through an endpoint ("livez").
func (i *indicators) observe(name, endpoint string, passed bool) {
	value, status := 0.0, "error"
	if passed {
		value, status = 1, "success"
	}
	i.last.WithLabelValues(name, endpoint).Set(value)
	i.total.WithLabelValues(name, endpoint, status).Inc()
}
