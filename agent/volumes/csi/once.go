package csi

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errInUse is upstream's.
var errInUse = errors.New("volume uses the ReadWriteOncePod access mode and is already in use by another pod")

// onlyOne refuses a volume of which one pod at a time may have it while another one's record is there. The scheduler saw to it, unless
// the pod named its node itself. The caller has the turn, so of two pods one is the first.
func (m *Manager) onlyOne(t *task, v *volume) error {
	if !slices.Contains(t.source.access, corev1.ReadWriteOncePod) {
		return nil
	}
	if taken, err := m.taken(t, v); taken || err != nil {
		return errors.Join(err, errInUse)
	}
	return nil
}

// taken tells whether the record of another pod is there: the volume is published to it, or may be.
func (m *Manager) taken(t *task, v *volume) (bool, error) {
	for _, other := range m.others(v, t.Pod.UID) {
		if _, err := os.Stat(t.paths.podRecord(other)); !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return false, nil
}

// others are the pods beside one that have a volume, or want it.
func (m *Manager) others(v *volume, pod types.UID) (found []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range v.pods {
		if uid != pod {
			found = append(found, uid)
		}
	}
	return found
}
