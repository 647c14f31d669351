package cpushare

import "github.com/prometheus/client_golang/prometheus"

var (
	tenantsDesc = prometheus.NewDesc("setpoint_processor_tenants_at_share",
		"How many tenants took all of their share of the processors in the last tenth of a second.", nil, nil)
	waitedDesc  = prometheus.NewDesc("setpoint_processor_waited_total", "How many requests waited for their tenant's share.", nil, nil)
	refusedDesc = prometheus.NewDesc("setpoint_processor_refused_total", "How many requests would have waited too long.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Share) Describe(out chan<- *prometheus.Desc) {
	out <- tenantsDesc
	out <- waitedDesc
	out <- refusedDesc
}

// Collect implements prometheus.Collector.
func (s *Share) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	stats := s.stats
	s.mu.Unlock()
	out <- prometheus.MustNewConstMetric(tenantsDesc, prometheus.GaugeValue, float64(stats.tenants))
	out <- prometheus.MustNewConstMetric(waitedDesc, prometheus.CounterValue, float64(stats.waited))
	out <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(stats.refused))
}
