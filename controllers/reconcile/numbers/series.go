package numbers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/internal/histograms"
)

// Series are upstream's metrics that a single controller or the scheduler adds to, with upstream's names, labels and buckets. They
// never go back, not even with a new term. Series implements prometheus.Collector.
type Series struct {
	// waited and worked (seconds) are how long keys did, by name of the queue.
	waited, worked *prometheus.HistogramVec
	// Syncs and SyncTime (seconds) are of passes over Jobs, by completion_mode, result and action.
	Syncs    *prometheus.CounterVec
	SyncTime *prometheus.HistogramVec
	// JobsFinished are by completion_mode, result and reason, JobPodsFinished by completion_mode and result.
	JobsFinished, JobPodsFinished *prometheus.CounterVec
	// CronJobSkew is how long after its time each Job of a CronJob was created, in seconds.
	CronJobSkew prometheus.Histogram
	// NodeEvictions are the Nodes that got a taint with which pods go, by zone.
	NodeEvictions *prometheus.CounterVec
	// Attempts to place pods, and AttemptTime (seconds), are by result and profile.
	Attempts    *prometheus.CounterVec
	AttemptTime *prometheus.HistogramVec
	// PodAttempts is how many attempts each pod took that got a node, Victims how many pods each preemption evicts.
	PodAttempts, Victims prometheus.Histogram
	// Points (seconds) are by extension_point, status and profile.
	Points *prometheus.HistogramVec
	// deviceEvictions tell how long after a taint took effect each pod was deleted, in seconds.
	deviceEvictions prometheus.Histogram
	deviceDeletions prometheus.Counter
	// Incoming are pods that came to a queue of the scheduler, by queue and event.
	Incoming *prometheus.CounterVec

	all []prometheus.Collector
}

// Series are those of the ledger. A nil ledger gives some that nobody reads, so callers ask once and keep them.
func (l *Ledger) Series() *Series {
	if l == nil {
		return newSeries()
	}
	l.once.Do(func() { l.series = newSeries() })
	return l.series
}

func newSeries() *Series {
	s := &Series{}
	s.waited = s.histograms("workqueue_queue_duration_seconds", "How long in seconds an item stays in workqueue before being requested.",
		queueBounds, "name")
	s.worked = s.histograms("workqueue_work_duration_seconds", "How long in seconds processing an item from workqueue takes.", queueBounds, "name")
	s.ofJobs()
	s.ofScheduler()
	s.NodeEvictions = s.counters("node_collector_evictions_total", "Nodes that got a taint with which pods have to go.", "zone")
	s.deviceEvictions = s.histogram("device_taint_eviction_controller_pod_deletion_duration_seconds",
		"How long after the taint of a device took effect pods were deleted.", evictionBounds)
	s.deviceDeletions = s.counters("device_taint_eviction_controller_pod_deletions_total",
		"Pods deleted because of the taint of a device.").WithLabelValues()
	return s
}

func (s *Series) ofJobs() {
	s.Syncs = s.counters("job_controller_job_syncs_total", "Passes over Jobs.", "completion_mode", "result", "action")
	s.SyncTime = s.histograms("job_controller_job_sync_duration_seconds", "Time of a pass over a Job.",
		prometheus.ExponentialBuckets(0.004, 2, 15), "completion_mode", "result", "action")
	s.JobsFinished = s.counters("job_controller_jobs_finished_total", "Jobs that finished.", "completion_mode", "result", "reason")
	s.JobPodsFinished = s.counters("job_controller_job_pods_finished_total", "Pods of Jobs that ended and are counted.", "completion_mode", "result")
	s.CronJobSkew = s.histogram("cronjob_controller_job_creation_skew_duration_seconds",
		"Time from when a Job of a CronJob was due until it was created.", prometheus.ExponentialBuckets(1, 2, 10))
}

func (s *Series) ofScheduler() {
	s.Attempts = s.counters("scheduler_schedule_attempts_total",
		"Attempts to schedule pods, by result: 'unschedulable' fit nowhere, 'error' were refused.", "result", "profile")
	s.AttemptTime = s.histograms("scheduler_scheduling_attempt_duration_seconds",
		"How long attempts to schedule pods took, with their binding.", prometheus.ExponentialBuckets(0.001, 2, 15), "result", "profile")
	s.PodAttempts = s.histogram("scheduler_pod_scheduling_attempts", "Attempts that it took until a pod had a node.",
		prometheus.ExponentialBuckets(1, 2, 5))
	s.Victims = s.histogram("scheduler_preemption_victims", "Pods that are evicted to make room for another one.",
		prometheus.ExponentialBuckets(1, 2, 7))
	s.Points = s.histograms("scheduler_framework_extension_point_duration_seconds", "Time of all plugins of an extension point.",
		prometheus.ExponentialBuckets(0.0001, 2, 12), "extension_point", "status", "profile")
	s.Incoming = s.counters("scheduler_queue_incoming_pods_total", "Pods that came to a queue of the scheduler, by what brought them there.",
		"queue", "event")
}

// Upstream's bounds of buckets of work queues, and of the eviction from devices, in seconds.
var (
	queueBounds    = []float64{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10}
	evictionBounds = []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240}
)

// DeviceEvicted counts a pod that was deleted so long after its device's taint took effect.
func (s *Series) DeviceEvicted(after time.Duration) {
	s.deviceDeletions.Inc()
	s.deviceEvictions.Observe(after.Seconds())
}

// Attempted counts an attempt to place a pod by a profile that ended.
func (s *Series) Attempted(profile string, result Result, took time.Duration) {
	s.Attempts.WithLabelValues(string(result), profile).Inc()
	s.AttemptTime.WithLabelValues(string(result), profile).Observe(took.Seconds())
}

func (s *Series) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	s.all = append(s.all, v)
	return v
}

func (s *Series) histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(histograms.Options(name, help, bounds), labels)
	s.all = append(s.all, v)
	return v
}

func (s *Series) histogram(name, help string, bounds []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(histograms.Options(name, help, bounds))
	s.all = append(s.all, h)
	return h
}

// Describe implements prometheus.Collector.
func (s *Series) Describe(out chan<- *prometheus.Desc) {
	for _, c := range s.all {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (s *Series) Collect(out chan<- prometheus.Metric) {
	for _, c := range s.all {
		c.Collect(out)
	}
}
