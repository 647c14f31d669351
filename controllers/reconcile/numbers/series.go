package numbers

import "github.com/prometheus/client_golang/prometheus"

// Series are upstream's metrics that a single controller or the scheduler adds to, with upstream's names, labels and buckets. They
// never go back, not even with a new term. Series implements prometheus.Collector.
type Series struct {
	// Syncs and SyncTime (seconds) are of passes over Jobs, by completion_mode, result and action.
	Syncs    *prometheus.CounterVec
	SyncTime *prometheus.HistogramVec
	// JobsFinished are by completion_mode, result and reason, JobPodsFinished by completion_mode and result.
	JobsFinished, JobPodsFinished *prometheus.CounterVec
	// CronJobSkew is how long after its time each Job of a CronJob was created, in seconds.
	CronJobSkew prometheus.Histogram
	// NodeEvictions are the Nodes that got a taint with which pods go, by zone.
	NodeEvictions *prometheus.CounterVec
	// PodAttempts is how many attempts each pod took that got a node, Victims how many pods each preemption evicts.
	PodAttempts, Victims prometheus.Histogram
	// Points (seconds) are by extension_point, status and profile.
	Points *prometheus.HistogramVec
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
	s.ofJobs()
	s.ofScheduler()
	s.NodeEvictions = s.counters("node_collector_evictions_total", "Nodes that got a taint with which pods have to go.", "zone")
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
	s.PodAttempts = s.histogram("scheduler_pod_scheduling_attempts", "Attempts that it took until a pod had a node.",
		prometheus.ExponentialBuckets(1, 2, 5))
	s.Victims = s.histogram("scheduler_preemption_victims", "Pods that are evicted to make room for another one.",
		prometheus.ExponentialBuckets(1, 2, 7))
	s.Points = s.histograms("scheduler_framework_extension_point_duration_seconds", "Time of all plugins of an extension point.",
		prometheus.ExponentialBuckets(0.0001, 2, 12), "extension_point", "status", "profile")
	s.Incoming = s.counters("scheduler_queue_incoming_pods_total", "Pods that came to a queue of the scheduler, by what brought them there.",
		"queue", "event")
}

func (s *Series) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	s.all = append(s.all, v)
	return v
}

func (s *Series) histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
	s.all = append(s.all, v)
	return v
}

func (s *Series) histogram(name, help string, bounds []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds})
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
