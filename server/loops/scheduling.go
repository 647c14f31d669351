package loops

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// Names, labels and buckets are those of upstream's pkg/scheduler/metrics.
var (
	pendingPods = prometheus.NewDesc("scheduler_pending_pods",
		"Pods without a node: 'active' are to be tried now, 'backoff' rest after an attempt, 'unschedulable' fit nowhere.", []string{"queue"}, nil)
	attempts = prometheus.NewDesc("scheduler_schedule_attempts_total",
		"Attempts to schedule pods, by result: 'unschedulable' fit nowhere, 'error' were refused.", []string{"result", "profile"}, nil)
	attemptTime = prometheus.NewDesc("scheduler_scheduling_attempt_duration_seconds",
		"How long attempts to schedule pods took, with their binding.", []string{"result", "profile"}, nil)
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
	for profile, byResult := range counts.Attempts {
		for result, a := range byResult {
			out <- prometheus.MustNewConstMetric(attempts, prometheus.CounterValue, float64(a.Count), string(result), profile)
			out <- histogram(attemptTime, a, string(result), profile)
		}
	}
}
