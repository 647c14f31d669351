package loops

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// Names, labels and buckets are those of upstream's pkg/scheduler/metrics.
var (
	pendingPods = prometheus.NewDesc("scheduler_pending_pods",
		"Pods without a node: 'active' are to be tried now, 'backoff' rest after an attempt, 'unschedulable' fit nowhere.", []string{"queue"}, nil)
	preemptions = prometheus.NewDesc("scheduler_preemption_attempts_total", "Attempts to make room for a pod.", nil, nil)
)

// collectScheduling shows what the scheduler does; nothing before it has ever acted here.
func collectScheduling(counts numbers.SchedulingCounts, out chan<- prometheus.Metric) {
	if !counts.Acted {
		return
	}
	out <- prometheus.MustNewConstMetric(preemptions, prometheus.CounterValue, float64(counts.Preemptions))
	for queue, pods := range counts.Pending {
		out <- prometheus.MustNewConstMetric(pendingPods, prometheus.GaugeValue, float64(pods), queue)
	}
}
