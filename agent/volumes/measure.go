package volumes

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
)

// Measure says how full a pod's persistent volume is: its driver knows, or its file system. Of hostPath volumes and of block devices
// without a driver nothing is known, as with a kubelet; that is csi.ErrNoStats.
//
// A file system that hangs is waited for longer than ctx.
func (m *Manager) Measure(ctx context.Context, pod types.UID, pv *corev1.PersistentVolume) (*stats.FsStats, error) {
	switch {
	case m.hasDriver(pv):
		return m.Drivers.Stats(ctx, pod, pv)
	case isBlock(pv) || pv.Spec.HostPath != nil:
		return nil, csi.ErrNoStats
	}
	path, _, err := m.folder(pv)
	if err != nil {
		return nil, err
	}
	return fileSystem(path)
}

func fileSystem(path string) (*stats.FsStats, error) {
	now := metav1.Now()
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	block := uint64(fs.Bsize)
	bytes := func(blocks uint64) *uint64 { blocks *= block; return &blocks }
	inodes := func(n uint64) *uint64 { return &n }
	return &stats.FsStats{
		Time: now, AvailableBytes: bytes(fs.Bavail), CapacityBytes: bytes(fs.Blocks), UsedBytes: bytes(fs.Blocks - fs.Bfree),
		Inodes: inodes(fs.Files), InodesFree: inodes(fs.Ffree), InodesUsed: inodes(fs.Files - fs.Ffree),
	}, nil
}
