package loops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// Metrics shows a ledger. It implements prometheus.Collector.
type Metrics struct {
	Ledger *numbers.Ledger
	// Now is the time by which the loops act.
	Now func() time.Time
}

func described(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"name"}, nil)
}

// The names and texts are upstream's (k8s.io/component-base/metrics/prometheus/workqueue), but for the last ones.
var (
	depth      = described("workqueue_depth", "Current depth of workqueue")
	adds       = described("workqueue_adds_total", "Total number of adds handled by workqueue")
	unfinished = described("workqueue_unfinished_work_seconds", "How many seconds of work has done that is in progress and hasn't been "+
		"observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate "+
		"at which this increases.")
	longest = described("workqueue_longest_running_processor_seconds",
		"How many seconds has the longest running processor for workqueue been running.")
	retries = described("workqueue_retries_total", "Total number of retries handled by workqueue")
	failing = described("setpoint_loop_failing_keys", "Keys whose last pass failed.")
	events  = prometheus.NewDesc("setpoint_loop_events_total", "Events of control loops, by what became of them.", []string{"result"}, nil)
	circles = described("setpoint_loop_circles_total", "How often a key was put off because it wrote in circles.")
)

// Describe implements prometheus.Collector.
func (m Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		depth, adds, unfinished, longest, retries, failing, circles, events, pendingPods, preemptions,
		claimCreations, resourceClaims,
	} {
		out <- d
	}
	m.Ledger.Series().Describe(out)
}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(out chan<- prometheus.Metric) {
	m.collectEvents(out)
	m.Ledger.Series().Collect(out)
	collectScheduling(m.Ledger.Scheduling.Counts(), out)
	collectDevices(m.Ledger.Devices.Counts(), out)
	for _, c := range m.Ledger.Counts(m.Now()) {
		value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			out <- prometheus.MustNewConstMetric(d, kind, v, c.Queue)
		}
		value(depth, prometheus.GaugeValue, float64(c.Depth))
		value(adds, prometheus.CounterValue, float64(c.Adds))
		value(unfinished, prometheus.GaugeValue, c.Unfinished.Seconds())
		value(longest, prometheus.GaugeValue, c.Longest.Seconds())
		value(retries, prometheus.CounterValue, float64(c.Retries))
		value(failing, prometheus.GaugeValue, float64(c.Failing))
		value(circles, prometheus.CounterValue, float64(c.Circles))
	}
}

// collectEvents shows what became of events.
func (m Metrics) collectEvents(out chan<- prometheus.Metric) {
	report := m.Ledger.Events.Report()
	for result, count := range map[string]uint64{
		"sent": report.Sent, "limited": report.Limited, "dropped": report.Dropped, "refused": report.Refused,
	} {
		out <- prometheus.MustNewConstMetric(events, prometheus.CounterValue, float64(count), result)
	}
}
