package pinning

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
)

// What resources are aligned at, by upstream's names.
const (
	physicalCPU = "physical_cpu"
	numaNode    = "numa_node"
	uncoreCache = "uncore_cache"
)

// counts are the metrics, under upstream's names.
type counts struct {
	admissions, admissionErrors, pinnings, pinningErrors, memoryPinnings, memoryErrors prometheus.Counter
	admissionTime                                                                      prometheus.Histogram
	shared, exclusive                                                                  prometheus.Gauge
	perNode                                                                            *prometheus.GaugeVec
	alignments, misalignments                                                          *prometheus.CounterVec
}

func newCounts() *counts {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "kubelet", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "kubelet", Name: name, Help: help})
	}
	aligned := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "kubelet", Name: name, Help: help}, []string{"scope", "boundary"})
	}
	return &counts{
		admissions:      counter("topology_manager_admission_requests_total", "The number of admission requests where resources have to be aligned."),
		admissionErrors: counter("topology_manager_admission_errors_total", "The number of admission request failures where resources could not be aligned."),
		admissionTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "kubelet", Name: "topology_manager_admission_duration_ms",
			Help: "Duration in milliseconds to serve a pod admission request.", Buckets: prometheus.ExponentialBuckets(.05, 2, 15),
		}),
		pinnings:       counter("cpu_manager_pinning_requests_total", "The number of cpu core allocations which required pinning."),
		pinningErrors:  counter("cpu_manager_pinning_errors_total", "The number of cpu core allocations which required pinning failed."),
		memoryPinnings: counter("memory_manager_pinning_requests_total", "The number of memory pages allocations which required pinning."),
		memoryErrors:   counter("memory_manager_pinning_errors_total", "The number of memory pages allocations which required pinning that failed."),
		shared:         gauge("cpu_manager_shared_pool_size_millicores", "The size of the shared CPU pool for non-guaranteed QoS pods, in millicores."),
		exclusive: gauge("cpu_manager_exclusive_cpu_allocation_count",
			"The total number of CPUs exclusively allocated to containers running on this node"),
		perNode: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "kubelet", Name: "cpu_manager_allocation_per_numa", Help: "Number of CPUs allocated per NUMA node",
		}, []string{"numa_node"}),
		alignments: aligned("container_aligned_compute_resources_count",
			"Cumulative number of aligned compute resources allocated to containers by alignment type."),
		misalignments: aligned("container_aligned_compute_resources_failure_count",
			"Cumulative number of failures to allocate aligned compute resources to containers by alignment type."),
	}
}

func (c *counts) all() []prometheus.Collector {
	return []prometheus.Collector{
		c.admissions, c.admissionErrors, c.admissionTime, c.pinnings, c.pinningErrors, c.memoryPinnings, c.memoryErrors,
		c.shared, c.exclusive, c.perNode, c.alignments, c.misalignments,
	}
}

// Collectors are for /metrics.
func (m *Manager) Collectors() []prometheus.Collector { return m.counts.all() }

// begin has the series that a policy counts, before there is anything to count.
func (c *counts) begin(cpus, aligned bool) {
	if cpus {
		c.alignments.WithLabelValues(string(topology.OfContainer), physicalCPU).Add(0)
		c.misalignments.WithLabelValues(string(topology.OfContainer), physicalCPU).Add(0)
		c.alignments.WithLabelValues(string(topology.OfContainer), uncoreCache).Add(0)
	}
	if aligned {
		for _, scope := range topology.Scopes {
			c.alignments.WithLabelValues(string(scope), numaNode).Add(0)
			c.misalignments.WithLabelValues(string(scope), numaNode).Add(0)
		}
	}
}

// admission counts one, and its end when what it returns is called.
func (c *counts) admission() func(error) {
	c.admissions.Inc()
	start := time.Now()
	return func(err error) {
		c.admissionTime.Observe(float64(time.Since(start).Microseconds()) / 1000)
		if err != nil {
			c.admissionErrors.Inc()
		}
	}
}

func (c *counts) cpus(wholeCores bool, err error) {
	c.pinnings.Inc()
	if err != nil {
		c.pinningErrors.Inc()
	}
	switch {
	case wholeCores && err != nil:
		c.notAligned(topology.OfContainer, physicalCPU)
	case wholeCores:
		c.aligned(topology.OfContainer, physicalCPU)
	}
}

func (c *counts) memory(err error) {
	c.memoryPinnings.Inc()
	if err != nil {
		c.memoryErrors.Inc()
	}
}

func (c *counts) aligned(scope topology.Scope, boundary string) {
	c.alignments.WithLabelValues(string(scope), boundary).Inc()
}

func (c *counts) notAligned(scope topology.Scope, boundary string) {
	c.misalignments.WithLabelValues(string(scope), boundary).Inc()
}

// show sets what is given and what is left.
func (c *counts) show(p *cpus.Static, s *cpus.State) {
	c.shared.Set(float64(s.Shared.Difference(p.Reserved).Size() * 1000))
	c.exclusive.Set(float64(s.Assigned().Size()))
	c.perNode.Reset()
	for node, n := range p.PerNode(s) {
		c.perNode.WithLabelValues(strconv.Itoa(node)).Set(float64(n))
	}
}
