package kubeletapi

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/measure"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

const nanosecondsPerSecond = 1e9

// sink makes metrics of names as they come, so that a list of them can be read from top to bottom. It is a Collector that says
// nothing of itself in advance.
type sink struct{ list []prometheus.Metric }

func (k *sink) Describe(chan<- *prometheus.Desc) {}
func (k *sink) Collect(to chan<- prometheus.Metric) {
	for _, m := range k.list {
		to <- m
	}
}

// series has the names and values of one series.
type series struct{ names, values []string }

// put adds a series that was measured at at; the zero time: now.
func (k *sink) put(name, help string, kind prometheus.ValueType, value float64, at time.Time, l series) {
	m := prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, l.names, nil), kind, value, l.values...)
	if !at.IsZero() {
		m = prometheus.NewMetricWithTimestamp(at, m)
	}
	k.list = append(k.list, m)
}

func (k *sink) serve(w http.ResponseWriter, r *http.Request) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(k)
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// resourceMetrics are /metrics/resource: what a metrics-server reads, under upstream's names.
func (s *server) resourceMetrics(w http.ResponseWriter, r *http.Request) {
	var k sink
	_, latest := s.latest(r.Context())
	now, machine := latest.use, latest.machine
	failed := 0.0
	if machine != nil {
		k.put("node_cpu_usage_seconds_total", "Cumulative cpu time consumed by the node in core-seconds",
			prometheus.CounterValue, float64(machine.nanoseconds)/nanosecondsPerSecond, machine.at, series{})
		k.put("node_memory_working_set_bytes", "Current working set of the node in bytes",
			prometheus.GaugeValue, float64(machine.memory), machine.at, series{})
	} else {
		failed = 1
	}
	sums := map[string]*podSum{}
	started := s.started()
	for _, id := range slices.Sorted(maps.Keys(now.containers)) {
		c := now.containers[id]
		k.container(c, started[id])
		sumOf(sums, c).add(c)
	}
	for _, uid := range slices.Sorted(maps.Keys(sums)) {
		k.pod(sums[uid], now.pods[uid])
	}
	k.put("scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", prometheus.GaugeValue, failed, time.Time{}, series{})
	k.put("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise",
		prometheus.GaugeValue, failed, time.Time{}, series{})
	k.serve(w, r)
}

func (k *sink) container(c *runtimeapi.ContainerStats, started time.Time) {
	of := c.GetAttributes().GetLabels()
	l := series{[]string{"container", "pod", "namespace"},
		[]string{c.GetAttributes().GetMetadata().GetName(), of[observed.LabelPodName], of[observed.LabelPodNamespace]}}
	if cpu := c.GetCpu(); cpu != nil {
		k.put("container_cpu_usage_seconds_total", "Cumulative cpu time consumed by the container in core-seconds",
			prometheus.CounterValue, float64(cpu.UsageCoreNanoSeconds.GetValue())/nanosecondsPerSecond, time.Unix(0, cpu.Timestamp), l)
	}
	if memory := c.GetMemory(); memory != nil {
		k.put("container_memory_working_set_bytes", "Current working set of the container in bytes",
			prometheus.GaugeValue, float64(memory.WorkingSetBytes.GetValue()), time.Unix(0, memory.Timestamp), l)
	}
	if !started.IsZero() {
		k.put("container_start_time_seconds", "Start time of the container since unix epoch in seconds",
			prometheus.GaugeValue, float64(started.UnixNano())/nanosecondsPerSecond, time.Time{}, l)
	}
}

// podSum adds up the containers of a pod, for runtimes that do not know the whole.
type podSum struct {
	name, namespace string
	cpu, memory     float64
	at              time.Time
}

func sumOf(sums map[string]*podSum, c *runtimeapi.ContainerStats) *podSum {
	of := c.GetAttributes().GetLabels()
	uid := of[observed.LabelPodUID]
	if sums[uid] == nil {
		sums[uid] = &podSum{name: of[observed.LabelPodName], namespace: of[observed.LabelPodNamespace]}
	}
	return sums[uid]
}

func (p *podSum) add(c *runtimeapi.ContainerStats) {
	p.cpu += float64(c.GetCpu().GetUsageCoreNanoSeconds().GetValue())
	p.memory += float64(c.GetMemory().GetWorkingSetBytes().GetValue())
	p.at = time.Unix(0, c.GetCpu().GetTimestamp())
}

func (k *sink) pod(p *podSum, whole *runtimeapi.LinuxPodSandboxStats) {
	if cpu, memory := whole.GetCpu(), whole.GetMemory(); cpu != nil && memory != nil {
		p.cpu, p.memory = float64(cpu.UsageCoreNanoSeconds.GetValue()), float64(memory.WorkingSetBytes.GetValue())
		p.at = time.Unix(0, cpu.Timestamp)
	}
	l := series{[]string{"pod", "namespace"}, []string{p.name, p.namespace}}
	k.put("pod_cpu_usage_seconds_total", "Cumulative cpu time consumed by the pod in core-seconds",
		prometheus.CounterValue, p.cpu/nanosecondsPerSecond, p.at, l)
	k.put("pod_memory_working_set_bytes", "Current working set of the pod in bytes", prometheus.GaugeValue, p.memory, p.at, l)
}

// cadvisorMetrics are /metrics/cadvisor: under cAdvisor's names what the runtime tells of containers and pods.
func (s *server) cadvisorMetrics(w http.ResponseWriter, r *http.Request) {
	var k sink
	_, latest := s.latest(r.Context())
	now, machine := latest.use, latest.machine
	k.put("machine_cpu_cores", "Number of logical CPU cores.", prometheus.GaugeValue, float64(runtime.NumCPU()), time.Time{}, series{})
	if memory, err := measure.ReadMemory(measure.Proc); err == nil {
		k.put("machine_memory_bytes", "Amount of memory installed on the machine.", prometheus.GaugeValue, float64(memory.Total), time.Time{}, series{})
	}
	if machine != nil {
		root := cadvisorLabels("/", "", "", nil, "")
		k.put("container_cpu_usage_seconds_total", cpuHelp, prometheus.CounterValue,
			float64(machine.nanoseconds)/nanosecondsPerSecond, machine.at, root.with("cpu", "total"))
		k.put("container_memory_working_set_bytes", workingSetHelp, prometheus.GaugeValue, float64(machine.memory), machine.at, root)
		for _, resource := range []string{"cpu", "memory", "io"} {
			k.pressure(resource, pressureOf(procDir, resource), time.Time{}, root)
		}
	}
	pods := map[types.UID]*corev1.Pod{}
	for _, pod := range s.Pods.Pods() {
		pods[pod.UID] = pod
	}
	started := s.started()
	for _, id := range slices.Sorted(maps.Keys(now.containers)) {
		c := now.containers[id]
		if pod := pods[types.UID(c.GetAttributes().GetLabels()[observed.LabelPodUID])]; pod != nil {
			k.cadvisorContainer(pod, c, started[id], s.QuotaPeriod)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(now.pods)) {
		if pod := pods[types.UID(uid)]; pod != nil {
			k.cadvisorPod(pod, now.pods[uid])
		}
	}
	k.serve(w, r)
}

const (
	cpuHelp        = "Cumulative cpu time consumed in seconds."
	workingSetHelp = "Current working set in bytes."
)

// cadvisorLabels name one group; pod is nil for the machine.
func cadvisorLabels(id, container, image string, pod *corev1.Pod, name string) series {
	l := series{[]string{"id", "container", "image", "name", "pod", "namespace"}, []string{id, container, image, name, "", ""}}
	if pod != nil {
		l.values[4], l.values[5] = pod.Name, pod.Namespace
	}
	return l
}

func (l series) with(name, value string) series {
	return series{append(slices.Clone(l.names), name), append(slices.Clone(l.values), value)}
}

func (k *sink) cadvisorContainer(pod *corev1.Pod, c *runtimeapi.ContainerStats, started time.Time, period time.Duration) {
	id, name := c.GetAttributes().GetId(), c.GetAttributes().GetMetadata().GetName()
	spec := containerOf(pod, name)
	l := cadvisorLabels(podconfig.CgroupParent(pod)+"/"+id, name, spec.Image, pod, id)
	k.cadvisorUse(l, c.GetCpu(), c.GetMemory(), c.GetIo())
	if layer := c.GetWritableLayer(); layer != nil {
		k.put("container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.",
			prometheus.GaugeValue, float64(layer.UsedBytes.GetValue()), time.Unix(0, layer.Timestamp), l.with("device", ""))
	}
	if !started.IsZero() {
		k.put("container_start_time_seconds", "Start time of the container since unix epoch in seconds.",
			prometheus.GaugeValue, float64(started.UnixNano())/nanosecondsPerSecond, time.Time{}, l)
	}
	k.put("container_spec_memory_limit_bytes", "Memory limit for the container.",
		prometheus.GaugeValue, float64(spec.Resources.Limits.Memory().Value()), time.Time{}, l)
	asked := podconfig.Resources(pod, spec, podconfig.Node{QuotaPeriod: period})
	k.put("container_spec_cpu_shares", "CPU share of the container.", prometheus.GaugeValue, float64(asked.CpuShares), time.Time{}, l)
	if asked.CpuQuota > 0 {
		k.put("container_spec_cpu_quota", "CPU quota of the container.", prometheus.GaugeValue, float64(asked.CpuQuota), time.Time{}, l)
		k.put("container_spec_cpu_period", "CPU period of the container.", prometheus.GaugeValue, float64(asked.CpuPeriod), time.Time{}, l)
	}
}

// containerOf is what the pod says of the container; an empty one if it says nothing.
func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return &corev1.Container{}
}

func (k *sink) cadvisorPod(pod *corev1.Pod, p *runtimeapi.LinuxPodSandboxStats) {
	l := cadvisorLabels(podconfig.CgroupParent(pod), "", "", pod, "")
	k.cadvisorUse(l, p.GetCpu(), p.GetMemory(), p.GetIo())
	if processes := p.GetProcess(); processes != nil {
		k.put("container_processes", "Number of processes running inside the container.",
			prometheus.GaugeValue, float64(processes.ProcessCount.GetValue()), time.Unix(0, processes.Timestamp), l)
	}
	at := time.Unix(0, p.GetNetwork().GetTimestamp())
	for _, i := range p.GetNetwork().GetInterfaces() {
		of := l.with("interface", i.Name)
		for _, n := range []struct {
			name, help string
			value      *runtimeapi.UInt64Value
		}{
			{"container_network_receive_bytes_total", "Cumulative count of bytes received", i.RxBytes},
			{"container_network_receive_errors_total", "Cumulative count of errors encountered while receiving", i.RxErrors},
			{"container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", i.TxBytes},
			{"container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting", i.TxErrors},
		} {
			k.put(n.name, n.help, prometheus.CounterValue, float64(n.value.GetValue()), at, of)
		}
	}
}

// cadvisorUse is what containers and pods have in common.
func (k *sink) cadvisorUse(l series, cpu *runtimeapi.CpuUsage, memory *runtimeapi.MemoryUsage, io *runtimeapi.IoUsage) {
	k.pressure("cpu", psiOf(cpu.GetPsi()), time.Unix(0, cpu.GetTimestamp()), l)
	k.pressure("memory", psiOf(memory.GetPsi()), time.Unix(0, memory.GetTimestamp()), l)
	k.pressure("io", psiOf(io.GetPsi()), time.Unix(0, io.GetTimestamp()), l)
	if cpu != nil {
		at := time.Unix(0, cpu.Timestamp)
		k.put("container_cpu_usage_seconds_total", cpuHelp, prometheus.CounterValue,
			float64(cpu.UsageCoreNanoSeconds.GetValue())/nanosecondsPerSecond, at, l.with("cpu", "total"))
		k.put("container_last_seen", "Last time a container was seen by the exporter", prometheus.GaugeValue, float64(at.Unix()), at, l)
	}
	if memory == nil {
		return
	}
	at := time.Unix(0, memory.Timestamp)
	for _, n := range []struct {
		name, help string
		value      *runtimeapi.UInt64Value
	}{
		{"container_memory_usage_bytes", "Current memory usage in bytes, including all memory regardless of when it was accessed", memory.UsageBytes},
		{"container_memory_working_set_bytes", workingSetHelp, memory.WorkingSetBytes},
		{"container_memory_rss", "Size of RSS in bytes.", memory.RssBytes},
	} {
		k.put(n.name, n.help, prometheus.GaugeValue, float64(n.value.GetValue()), at, l)
	}
	for kind, n := range map[string]*runtimeapi.UInt64Value{"pgfault": memory.PageFaults, "pgmajfault": memory.MajorPageFaults} {
		k.put("container_memory_failures_total", "Cumulative count of memory allocation failures.", prometheus.CounterValue,
			float64(n.GetValue()), at, l.with("failure_type", kind).with("scope", "container"))
	}
}

// probeMetrics are /metrics/probes: how often probes succeeded and failed.
func (s *server) probeMetrics(w http.ResponseWriter, r *http.Request) {
	var k sink
	if s.ProbeCounts != nil {
		for c, n := range s.ProbeCounts() {
			outcome := "failed"
			if c.OK {
				outcome = "successful"
			}
			k.put("prober_probe_total", "Cumulative number of a liveness, readiness or startup probe for a container by result.",
				prometheus.CounterValue, float64(n), time.Time{}, series{
					[]string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"},
					[]string{string(c.Kind), outcome, c.Container, c.Pod, c.Namespace, string(c.UID)},
				})
		}
	}
	k.serve(w, r)
}
