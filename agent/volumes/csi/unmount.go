package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
)

// Unmount takes all volumes from a pod, of which nothing but its UID need be known. One of whose driver nothing is heard keeps the
// others from nothing; the errors are joined.
func (m *Manager) Unmount(ctx context.Context, pod *corev1.Pod) error {
	found, err := m.publishedTo(pod.UID)
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range found {
		if err := m.unpublish(ctx, p.paths, pod); err != nil {
			failed = append(failed, fmt.Errorf("UnmountVolume.TearDown failed for volume %q : %w", p.specName, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	for _, i := range m.usedBy(pod.UID) { // also those that were never published
		m.disuse(i, pod.UID)
	}
	return nil
}

func (m *Manager) usedBy(pod types.UID) (used []id) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, v := range m.volumes {
		if v.pods[pod] {
			used = append(used, i)
		}
	}
	return used
}

func (m *Manager) unpublish(ctx context.Context, p paths, pod *corev1.Pod) error {
	v := m.use(p.id, pod.UID, p)
	if err := v.begin(ctx); err != nil {
		return err
	}
	defer v.end()
	d, err := m.drivers.get(p.id.driver)
	if err != nil {
		return fmt.Errorf("kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client: %w", err)
	}
	request := &spec.NodeUnpublishVolumeRequest{VolumeId: p.id.handle, TargetPath: p.target(pod.UID)}
	defer m.tellSlow(pod, p, events.FailedUnmount, "NodeUnpublishVolume")()
	if _, err := call(ctx, d.node.NodeUnpublishVolume, request); err != nil {
		return fmt.Errorf("kubernetes.io/csi: Unmounter.TearDownAt failed: %w", err)
	}
	delete(v.published, pod.UID)
	delete(v.refused, pod.UID)
	return p.clearTarget(pod.UID)
}

// unstage takes the volume from this node. The caller has the turn.
func (m *Manager) unstage(ctx context.Context, i id, v *volume) error {
	if _, err := os.Stat(v.paths.stagingRecord()); errors.Is(err, fs.ErrNotExist) || v.paths.inline {
		return nil // it was not staged
	}
	d, err := m.drivers.get(i.driver)
	if err != nil {
		return err
	}
	request := &spec.NodeUnstageVolumeRequest{VolumeId: i.handle, StagingTargetPath: v.paths.staging()}
	if _, err := call(ctx, d.node.NodeUnstageVolume, request); err != nil {
		return err
	}
	v.staged = false
	return v.paths.clearStaging()
}

// clearTarget removes what a pod had of the volume, the record last. The driver has unmounted it.
func (p paths) clearTarget(pod types.UID) error {
	gone := []string{p.target(pod)}
	if p.block {
		gone = append(gone, filepath.Dir(p.target(pod)))
	}
	return removeEmpty(slices.Concat(gone, []string{p.podRecord(pod), p.podFolder(pod)})...)
}

// clearStaging removes the place where the volume was staged, the record last.
func (p paths) clearStaging() error {
	return removeEmpty(p.staging(), p.stagingRecord(), filepath.Dir(p.stagingRecord()))
}

// removeEmpty removes files and empty folders. What has content may be a volume that is still mounted, or another pod's; a
// folder that others use is left.
func removeEmpty(paths ...string) error {
	for i, path := range paths {
		err := os.Remove(path)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
		case i > 0 && errors.Is(err, fs.ErrExist): // ENOTEMPTY: the publish folder of other pods
		default:
			return err
		}
	}
	return nil
}
