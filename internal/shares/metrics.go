package shares

import "github.com/prometheus/client_golang/prometheus"

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"of"}, nil)
}

var (
	limitDesc   = desc("setpoint_shares_limit", "How many of something all tenants of this process can have together.")
	takenDesc   = desc("setpoint_shares_taken", "How many of them tenants have now.")
	refusedDesc = desc("setpoint_shares_refused_total", "How often somebody got none, because he had his share or all were taken.")
)

// Metrics are those of several kinds of places.
type Metrics []*Places

// Describe implements prometheus.Collector.
func (m Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- limitDesc
	out <- takenDesc
	out <- refusedDesc
}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(out chan<- prometheus.Metric) {
	for _, p := range m {
		p.mu.Lock()
		taken, refused := p.taken, p.refused
		p.mu.Unlock()
		out <- prometheus.MustNewConstMetric(limitDesc, prometheus.GaugeValue, float64(p.limits.All), p.what)
		out <- prometheus.MustNewConstMetric(takenDesc, prometheus.GaugeValue, float64(taken), p.what)
		out <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(refused), p.what)
	}
}
