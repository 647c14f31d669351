package eviction

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/measure"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// Runtime is the part of CRI that tells what containers and images use.
type Runtime interface {
	Layers
	ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error)
	ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error)
}

// Machine observes the machine that this process runs on.
type Machine struct {
	Runtime Runtime
	// DataDir is on the file system of the pods' files.
	DataDir string
	// ReservedBytes of the memory pods cannot have; 0: all of it is theirs.
	ReservedBytes int64
}

// Observe returns what it could see, also with an error.
func (m Machine) Observe(ctx context.Context) (Observations, Layout, error) {
	seen := Observations{}
	memory, memoryErr := measure.ReadMemory(measure.Proc)
	if memoryErr == nil {
		seen[MemoryAvailable] = Observation{memory.Total, memory.Available}
	}
	processes, pidsErr := measure.ReadProcesses(measure.Proc)
	if pidsErr == nil {
		seen[PIDAvailable] = Observation{processes.Max, processes.Max - processes.Running}
	}
	layout, disksErr := m.disks(ctx, seen)
	var liveErr error
	if m.ReservedBytes > 0 && memoryErr == nil {
		seen[AllocatableMemoryAvailable], liveErr = m.allocatable(ctx, memory.Total-m.ReservedBytes)
	}
	return seen, layout, errors.Join(memoryErr, pidsErr, disksErr, liveErr)
}

// allocatable is what pods leave of what they can have.
func (m Machine) allocatable(ctx context.Context, capacity int64) (Observation, error) {
	live, err := m.Live(ctx)
	o := Observation{capacity, capacity}
	for _, pod := range live {
		o.Available -= pod.MemoryBytes
	}
	return o, err
}

func (m Machine) disks(ctx context.Context, seen Observations) (Layout, error) {
	node, err := measure.FileSystemOf(m.DataDir)
	if err != nil {
		return Layout{}, err
	}
	seen.disk(NodeFsAvailable, NodeFsInodesFree, node)
	info, err := m.Runtime.ImageFsInfo(ctx)
	if err != nil || len(info.GetImageFilesystems()) == 0 {
		return Layout{}, err
	}
	images, err := measure.FileSystemOf(info.ImageFilesystems[0].GetFsId().GetMountpoint())
	if err != nil {
		return Layout{}, err
	}
	seen.disk(ImageFsAvailable, ImageFsInodesFree, images)
	layout := Layout{ImagesApart: images.Device != node.Device}
	if list := info.GetContainerFilesystems(); layout.ImagesApart && len(list) > 0 {
		layers, err := measure.FileSystemOf(list[0].GetFsId().GetMountpoint())
		layout.LayersWithPods = err == nil && layers.Device == node.Device
	}
	return layout, nil
}

// disk leaves inodes out where they are not counted.
func (o Observations) disk(bytes, inodes Signal, fs measure.FileSystem) {
	o[bytes] = Observation{fs.CapacityBytes, fs.AvailBytes}
	if fs.CapacityInodes > 0 {
		o[inodes] = Observation{fs.CapacityInodes, fs.AvailInodes}
	}
}

// Live is what the processes of all pods use. A runtime that knows nothing of pods as a whole tells of containers only.
func (m Machine) Live(ctx context.Context) (map[types.UID]Live, error) {
	containers, err := m.Runtime.ListContainerStats(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := map[types.UID]Live{}
	for _, c := range containers {
		uid := types.UID(c.GetAttributes().GetLabels()[observed.LabelPodUID])
		live := out[uid]
		if live.Containers == nil {
			live.Containers = map[string]int64{}
		}
		bytes := int64(c.GetMemory().GetWorkingSetBytes().GetValue())
		live.Containers[c.GetAttributes().GetMetadata().GetName()] += bytes
		live.MemoryBytes += bytes
		out[uid] = live
	}
	sandboxes, err := m.Runtime.ListPodSandboxStats(ctx, nil)
	if err != nil {
		return out, nil //nolint:nilerr // containerd 1.6 has not all of it
	}
	for _, s := range sandboxes {
		uid := types.UID(s.GetAttributes().GetLabels()[observed.LabelPodUID])
		live := out[uid]
		live.Processes = int64(s.GetLinux().GetProcess().GetProcessCount().GetValue())
		if whole := s.GetLinux().GetMemory().GetWorkingSetBytes(); whole != nil {
			live.MemoryBytes = int64(whole.GetValue())
		}
		out[uid] = live
	}
	return out, nil
}
