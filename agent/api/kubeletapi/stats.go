package kubeletapi

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// rate is a container's CPU use in nanocores over the last window; ok is false
// before there are two readings.
func rate(last, now *runtimeapi.ContainerStats) (nanocores uint64, ok bool) {
	a, b := last.GetCpu(), now.GetCpu()
	if a == nil || b == nil || b.Timestamp <= a.Timestamp || b.UsageCoreNanoSeconds.GetValue() < a.UsageCoreNanoSeconds.GetValue() {
		return 0, false
	}
	used := float64(b.UsageCoreNanoSeconds.GetValue() - a.UsageCoreNanoSeconds.GetValue())
	return uint64(used / float64(b.Timestamp-a.Timestamp) * 1e9), true
}

// summary is what metrics servers read.
func (s *server) summary(w http.ResponseWriter, r *http.Request) {
	last, now := s.latest(r.Context())
	pods := map[string]*stats.PodStats{}
	var node containerSum
	out := stats.Summary{Node: stats.NodeStats{NodeName: s.NodeName}, Pods: []stats.PodStats{}}
	s.machineParts(r.Context(), &out.Node)
	started := s.started()
	for _, id := range slices.Sorted(maps.Keys(now.use.containers)) {
		c := now.use.containers[id]
		p := podStats(pods, c)
		converted := convert(last.use.containers[id], c)
		converted.StartTime = metav1.NewTime(started[id])
		converted.Rootfs = rootfsOf(c.GetWritableLayer(), imageFs(&out.Node))
		p.Containers = append(p.Containers, converted)
		node.add(converted)
	}
	out.Node.CPU, out.Node.Memory = node.cpu, node.memory
	if now.machine != nil {
		out.Node.CPU, out.Node.Memory = now.machine.stats(last.machine)
		out.Node.CPU.PSI, out.Node.Memory.PSI = pressureOf(procDir, "cpu"), pressureOf(procDir, "memory")
	}
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		p := pods[uid]
		var sum containerSum
		for _, c := range p.Containers {
			sum.add(c)
		}
		p.CPU, p.Memory = sum.cpu, sum.memory
		podPressure(p, now.use.pods[uid])
		wholePod(p, now.use.pods[uid])
		if s.VolumeStats != nil {
			p.VolumeStats = s.VolumeStats.Of(types.UID(uid))
		}
		out.Pods = append(out.Pods, *p)
	}
	writeJSON(w, out)
}

// machineParts are what does not come from the samples.
func (s *server) machineParts(ctx context.Context, node *stats.NodeStats) {
	now := time.Now()
	s.disks(ctx, node, now)
	node.Rlimit = rlimit(now)
	if io := pressureOf(procDir, "io"); io != nil {
		node.IO = &stats.IOStats{Time: metav1.NewTime(now), PSI: io}
	}
}

// imageFs is where writable layers are, nil if that is not known.
func imageFs(node *stats.NodeStats) *stats.FsStats {
	switch {
	case node.Runtime == nil:
		return nil
	case node.Runtime.ContainerFs != nil:
		return node.Runtime.ContainerFs
	default:
		return node.Runtime.ImageFs
	}
}

// wholePod adds what only a pod has.
func wholePod(p *stats.PodStats, whole *runtimeapi.LinuxPodSandboxStats) {
	p.Network = networkOf(whole.GetNetwork())
	if processes := whole.GetProcess().GetProcessCount(); processes != nil {
		p.ProcessStats = &stats.ProcessStats{ProcessCount: count(processes.Value)}
	}
}

func podStats(pods map[string]*stats.PodStats, c *runtimeapi.ContainerStats) *stats.PodStats {
	labels := c.GetAttributes().GetLabels()
	uid := labels[observed.LabelPodUID]
	if pods[uid] == nil {
		pods[uid] = &stats.PodStats{PodRef: stats.PodReference{
			Name: labels[observed.LabelPodName], Namespace: labels[observed.LabelPodNamespace], UID: uid}}
	}
	return pods[uid]
}

func convert(last, now *runtimeapi.ContainerStats) stats.ContainerStats {
	out := stats.ContainerStats{Name: now.GetAttributes().GetMetadata().GetName()}
	if cpu := now.GetCpu(); cpu != nil {
		usage := cpu.UsageCoreNanoSeconds.GetValue()
		out.CPU = &stats.CPUStats{Time: metav1.NewTime(time.Unix(0, cpu.Timestamp)), UsageCoreNanoSeconds: &usage, PSI: psiOf(cpu.Psi)}
		if nanocores, ok := rate(last, now); ok {
			out.CPU.UsageNanoCores = &nanocores
		}
	}
	if m := now.GetMemory(); m != nil {
		working, usage, rss := m.WorkingSetBytes.GetValue(), m.UsageBytes.GetValue(), m.RssBytes.GetValue()
		out.Memory = &stats.MemoryStats{
			Time:            metav1.NewTime(time.Unix(0, m.Timestamp)),
			WorkingSetBytes: &working,
			UsageBytes:      &usage,
			RSSBytes:        &rss,
			PSI:             psiOf(m.Psi),
		}
	}
	out.IO = ioOf(now.GetIo())
	return out
}

// containerSum adds containers up; a part no container has stays nil.
type containerSum struct {
	cpu    *stats.CPUStats
	memory *stats.MemoryStats
}

func (s *containerSum) add(c stats.ContainerStats) {
	if c.CPU != nil {
		if s.cpu == nil {
			s.cpu = &stats.CPUStats{Time: c.CPU.Time}
		}
		addTo(&s.cpu.UsageCoreNanoSeconds, c.CPU.UsageCoreNanoSeconds)
		addTo(&s.cpu.UsageNanoCores, c.CPU.UsageNanoCores)
	}
	if c.Memory != nil {
		if s.memory == nil {
			s.memory = &stats.MemoryStats{Time: c.Memory.Time}
		}
		addTo(&s.memory.WorkingSetBytes, c.Memory.WorkingSetBytes)
		addTo(&s.memory.UsageBytes, c.Memory.UsageBytes)
		addTo(&s.memory.RSSBytes, c.Memory.RSSBytes)
	}
}

func addTo(sum **uint64, more *uint64) {
	if more == nil {
		return
	}
	total := *more
	if *sum != nil {
		total += **sum
	}
	*sum = &total
}

// registry has the process's own metrics and the number of pods.
func (s *server) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kubelet_running_pods", Help: "Number of pods that have a worker."},
			func() float64 { return float64(len(s.Pods.Pods())) }),
		shares.Metrics{s.dials.namespaces, s.streams.namespaces},
	)
	if s.VolumeStats != nil {
		r.MustRegister(volumeCollector{s.VolumeStats})
	}
	r.MustRegister(s.Collectors...)
	return r
}
