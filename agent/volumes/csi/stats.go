package csi

import (
	"context"
	"errors"
	"io/fs"
	"os"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// ErrNoStats is returned for volumes of which nothing can be told: the pod does not have them, or their driver does not tell.
var ErrNoStats = errors.New("there are no stats of the volume")

// Stats asks a driver how full a volume is that a pod has.
func (m *Manager) Stats(ctx context.Context, pod types.UID, pv *corev1.PersistentVolume) (*stats.FsStats, error) {
	s := sourceOf(&Volume{PV: pv})
	p := m.pathsOf(id{s.driver, s.handle}, pv.Name, s.block, false)
	if _, err := os.Stat(p.podRecord(pod)); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoStats
	}
	d, err := m.drivers.get(s.driver)
	if err != nil {
		return nil, err
	}
	if !d.can[spec.NodeServiceCapability_RPC_GET_VOLUME_STATS] {
		return nil, ErrNoStats
	}
	now := metav1.Now()
	answer, err := call(ctx, d.node.NodeGetVolumeStats, &spec.NodeGetVolumeStatsRequest{VolumeId: s.handle, VolumePath: p.target(pod)})
	if err != nil {
		return nil, err
	}
	if len(answer.GetUsage()) == 0 {
		return nil, ErrNoStats
	}
	return statsOf(answer.GetUsage(), now), nil
}

// statsOf has zeros for what a driver does not tell, as upstream.
func statsOf(usage []*spec.VolumeUsage, now metav1.Time) *stats.FsStats {
	out := &stats.FsStats{
		Time: now, AvailableBytes: new(uint64), CapacityBytes: new(uint64), UsedBytes: new(uint64),
		Inodes: new(uint64), InodesFree: new(uint64), InodesUsed: new(uint64),
	}
	for _, u := range usage {
		available, total, used := amount(u.GetAvailable()), amount(u.GetTotal()), amount(u.GetUsed())
		switch u.GetUnit() {
		case spec.VolumeUsage_BYTES:
			out.AvailableBytes, out.CapacityBytes, out.UsedBytes = available, total, used
		case spec.VolumeUsage_INODES:
			out.InodesFree, out.Inodes, out.InodesUsed = available, total, used
		}
	}
	return out
}

// amount takes what is less than nothing for nothing.
func amount(n int64) *uint64 {
	u := uint64(max(n, 0))
	return &u
}
