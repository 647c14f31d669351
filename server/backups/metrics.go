package backups

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what Prometheus is told. A nil Maker has none.
func (m *Maker) Metrics() []prometheus.Collector {
	if m == nil {
		return nil
	}
	gauge := func(name, help string, value *atomic.Int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value.Load()) })
	}
	return []prometheus.Collector{
		gauge("setpoint_backup_last_success_timestamp_seconds", "When this server's newest backup was made, 0 if there is none.", &m.last),
		gauge("setpoint_backup_due_timestamp_seconds", "When its next backup is to be made; a time that has passed if that failed.", &m.due),
		gauge("setpoint_backup_last_bytes", "Size of its newest backup.", &m.lastBytes),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "setpoint_backup_failures_total", Help: "Backups that were not made."},
			func() float64 { return float64(m.failures.Load()) }),
	}
}
