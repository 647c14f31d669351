package kubeletapi

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/base/measure"
)

func count[T int64 | int | uint64](n T) *uint64 {
	u := uint64(n)
	return &u
}

// fileSystem is what a summary says of the one that holds path; nil if it cannot be seen.
func fileSystem(path string, now time.Time) *stats.FsStats {
	fs, err := measure.FileSystemOf(path)
	if err != nil {
		return nil
	}
	out := &stats.FsStats{
		Time: metav1.NewTime(now), CapacityBytes: count(fs.CapacityBytes), AvailableBytes: count(fs.AvailBytes),
		UsedBytes: count(fs.CapacityBytes - fs.AvailBytes),
	}
	if fs.CapacityInodes > 0 {
		out.Inodes, out.InodesFree = count(fs.CapacityInodes), count(fs.AvailInodes)
		out.InodesUsed = count(fs.CapacityInodes - fs.AvailInodes)
	}
	return out
}

// disks are those of the pods' files and of the runtime.
func (s *server) disks(ctx context.Context, node *stats.NodeStats, now time.Time) {
	node.Fs = fileSystem(s.Dirs.Root, now)
	info, err := s.Runtime.ImageFsInfo(ctx)
	if err != nil || len(info.GetImageFilesystems()) == 0 {
		return
	}
	images := info.ImageFilesystems[0]
	node.Runtime = &stats.RuntimeStats{ImageFs: fileSystem(images.GetFsId().GetMountpoint(), now)}
	if fs := node.Runtime.ImageFs; fs != nil && images.GetUsedBytes() != nil {
		fs.UsedBytes = &images.UsedBytes.Value
	}
	if list := info.GetContainerFilesystems(); len(list) > 0 {
		node.Runtime.ContainerFs = fileSystem(list[0].GetFsId().GetMountpoint(), now)
	}
}

// rlimit is how many processes there are and can be.
func rlimit(now time.Time) *stats.RlimitStats {
	p, err := measure.ReadProcesses(measure.Proc)
	if err != nil {
		return nil
	}
	return &stats.RlimitStats{Time: metav1.NewTime(now), MaxPID: &p.Max, NumOfRunningProcesses: &p.Running}
}

func networkOf(n *runtimeapi.NetworkUsage) *stats.NetworkStats {
	if n == nil {
		return nil
	}
	out := &stats.NetworkStats{Time: metav1.NewTime(time.Unix(0, n.Timestamp))}
	if n.DefaultInterface != nil {
		out.InterfaceStats = interfaceOf(n.DefaultInterface)
	}
	for _, i := range n.Interfaces {
		out.Interfaces = append(out.Interfaces, interfaceOf(i))
	}
	return out
}

func interfaceOf(i *runtimeapi.NetworkInterfaceUsage) stats.InterfaceStats {
	return stats.InterfaceStats{
		Name: i.Name, RxBytes: count(i.RxBytes.GetValue()), RxErrors: count(i.RxErrors.GetValue()),
		TxBytes: count(i.TxBytes.GetValue()), TxErrors: count(i.TxErrors.GetValue()),
	}
}

// rootfsOf is a container's writable layer, on the file system that holds it.
func rootfsOf(layer *runtimeapi.FilesystemUsage, on *stats.FsStats) *stats.FsStats {
	if layer == nil {
		return nil
	}
	out := &stats.FsStats{}
	if on != nil {
		*out = *on
	}
	out.Time = metav1.NewTime(time.Unix(0, layer.Timestamp))
	out.UsedBytes, out.InodesUsed = count(layer.UsedBytes.GetValue()), count(layer.InodesUsed.GetValue())
	return out
}
