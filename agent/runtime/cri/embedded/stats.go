package embedded

import (
	"context"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/usage"
)

// reporter tells what there is and what it uses. It changes nothing.
type reporter struct {
	table         *table
	images        *images.Store
	containersDir string
}

// ContainerStats reports what one container uses.
func (r *reporter) ContainerStats(_ context.Context, id string) (*runtimeapi.ContainerStats, error) {
	c, err := r.table.container(id)
	if err != nil {
		return nil, err
	}
	stats, err := r.containerStats(c)
	return stats, coded(err)
}

// ListContainerStats reports all running containers that match. One that ends meanwhile is left out.
func (r *reporter) ListContainerStats(_ context.Context, by *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	match := &runtimeapi.ContainerFilter{
		Id: by.GetId(), PodSandboxId: by.GetPodSandboxId(), LabelSelector: by.GetLabelSelector(),
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}
	var list []*runtimeapi.ContainerStats
	for _, c := range r.table.allContainers() {
		if !passesContainer(c.item(), match) {
			continue
		}
		if stats, err := r.containerStats(c); err == nil {
			list = append(list, stats)
		}
	}
	return list, nil
}

func (r *reporter) containerStats(c *container) (*runtimeapi.ContainerStats, error) {
	stats := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		},
		WritableLayer: r.writableLayer(c),
	}
	if !c.isRunning() {
		return stats, nil
	}
	used, err := c.group.Usage()
	if err != nil {
		return nil, err
	}
	stats.Cpu, stats.Memory, stats.Io = usage.CPU(used), usage.Memory(used), usage.IO(used)
	return stats, nil
}

func value(number uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: number} }

func (r *reporter) writableLayer(c *container) *runtimeapi.FilesystemUsage {
	bytes, inodes := diskUsage(filepath.Join(c.dir, "upper"))
	return &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.containersDir},
		UsedBytes: value(bytes), InodesUsed: value(inodes),
	}
}

// diskUsage counts blocks, not lengths; what vanishes during the walk is not counted.
func diskUsage(dir string) (bytes, inodes uint64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // vanished
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += uint64(stat.Blocks) * 512
				inodes++
			}
		}
		return nil
	})
	return bytes, inodes
}

// PodSandboxStats reports a whole pod: its cgroup counts the shim too.
func (r *reporter) PodSandboxStats(_ context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	s, err := r.table.sandbox(id)
	if err != nil {
		return nil, err
	}
	stats, err := r.podStats(s)
	return stats, coded(err)
}

// ListPodSandboxStats reports all ready pods that match.
func (r *reporter) ListPodSandboxStats(_ context.Context, by *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	match := &runtimeapi.PodSandboxFilter{
		Id: by.GetId(), LabelSelector: by.GetLabelSelector(),
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}
	var list []*runtimeapi.PodSandboxStats
	for _, s := range r.table.allSandboxes() {
		if !passesSandbox(s.item(), match) {
			continue
		}
		if stats, err := r.podStats(s); err == nil {
			list = append(list, stats)
		}
	}
	return list, nil
}

func (r *reporter) podStats(s *sandbox) (*runtimeapi.PodSandboxStats, error) {
	used, err := s.pod.Usage()
	if err != nil {
		return nil, err
	}
	linux := &runtimeapi.LinuxPodSandboxStats{
		Cpu: usage.CPU(used), Memory: usage.Memory(used), Io: usage.IO(used), Network: s.networkUsage(),
		Process: &runtimeapi.ProcessUsage{Timestamp: time.Now().UnixNano(), ProcessCount: value(used.Processes)},
	}
	for _, c := range r.table.containersOf(s.id) {
		if !c.isRunning() {
			continue
		}
		if stats, err := r.containerStats(c); err == nil {
			linux.Containers = append(linux.Containers, stats)
		}
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id: s.id, Metadata: s.config.GetMetadata(), Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		},
		Linux: linux,
	}, nil
}

// networkUsage reads the host's end of the pair, whose directions are the pod's reversed.
func (s *sandbox) networkUsage() *runtimeapi.NetworkUsage {
	s.mu.Lock()
	name := s.record.Endpoint.HostInterface
	s.mu.Unlock()
	if name == "" {
		return nil
	}
	link, err := netlink.LinkByName(name)
	if err != nil || link.Attrs().Statistics == nil {
		return nil
	}
	counters := link.Attrs().Statistics
	usage := &runtimeapi.NetworkInterfaceUsage{
		Name: network.PodInterface, RxBytes: value(counters.TxBytes), RxErrors: value(counters.TxErrors),
		TxBytes: value(counters.RxBytes), TxErrors: value(counters.RxErrors),
	}
	return &runtimeapi.NetworkUsage{
		Timestamp:        time.Now().UnixNano(),
		DefaultInterface: usage,
		Interfaces:       []*runtimeapi.NetworkInterfaceUsage{usage},
	}
}

// ListMetricDescriptors is empty: the agent makes its metrics from the stats.
func (r *reporter) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics is empty, as ListMetricDescriptors says.
func (r *reporter) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, nil
}
