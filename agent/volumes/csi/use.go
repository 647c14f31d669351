package csi

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

// id is what a driver calls a volume.
type id struct{ driver, handle string }

// unique is the name of the volume in the Node's status.
func (i id) unique() corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + i.driver + "^" + i.handle)
}

// volume is one that is in use on this node.
type volume struct {
	paths paths
	// turn holds one while a call about the volume is under way.
	turn chan struct{}
	// staged and published are what this run has seen done, label is with which SELinux label; whoever has the turn reads and writes them.
	staged    bool
	published map[types.UID]bool
	label     string
	// refused is the size to which the volume was not expanded for a pod that only reads it, as that was told; who has the turn uses it.
	refused map[types.UID]string
	// pods use the volume, from before it is published to after it is unpublished. Manager.mu guards it.
	pods map[types.UID]bool
	// unstaging: a goroutine is about to. Manager.mu guards it.
	unstaging bool
}

func newVolume(p paths) *volume {
	return &volume{
		paths: p, turn: make(chan struct{}, 1),
		published: map[types.UID]bool{}, pods: map[types.UID]bool{}, refused: map[types.UID]string{},
	}
}

// begin waits for the turn.
func (v *volume) begin(ctx context.Context) error {
	select {
	case v.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *volume) end() { <-v.turn }

// use notes that a pod uses a volume.
func (m *Manager) use(i id, pod types.UID, p paths) *volume {
	m.mu.Lock()
	v := m.volumes[i]
	isNew := v == nil
	if isNew {
		v = newVolume(p)
		m.volumes[i] = v
	}
	v.pods[pod] = true
	m.mu.Unlock()
	if isNew {
		m.Changed()
	}
	return v
}

// disuse notes that a pod uses a volume no more, and unstages it if no other does.
func (m *Manager) disuse(i id, pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.volumes[i]; v != nil {
		delete(v.pods, pod)
		m.release(i, v)
	}
}

// releaseUnused begins to unstage what no pod uses.
func (m *Manager) releaseUnused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, v := range m.volumes {
		m.release(i, v)
	}
}

// release unstages a volume that no pod uses, however long that takes. m.mu is held.
func (m *Manager) release(i id, v *volume) {
	if len(v.pods) > 0 || v.unstaging || m.work.Err() != nil {
		return
	}
	v.unstaging = true
	m.children.Go(func() {
		for pause := retryMin; !m.unstageUnused(i, v); pause = min(2*pause, retryMax) {
			if !wait.For(m.work, pause) {
				return
			}
		}
	})
}

// unstageUnused reports whether nothing is left to do: the volume is unstaged, or a pod uses it again.
func (m *Manager) unstageUnused(i id, v *volume) bool {
	if v.begin(m.work) != nil {
		return true
	}
	defer v.end()
	if m.wanted(v) {
		return true
	}
	if err := m.unstage(m.work, i, v); err != nil {
		m.Logger.Warn("cannot unstage a volume yet", "driver", i.driver, "volume", i.handle, "err", err)
		return false
	}
	return m.forget(i, v)
}

// wanted tells whether a pod has come to use the volume, which ends its unstaging.
func (m *Manager) wanted(v *volume) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(v.pods) > 0 {
		v.unstaging = false
	}
	return len(v.pods) > 0
}

// forget takes a volume out of InUse, unless a pod has come to use it meanwhile: that one waits for the turn and stages it.
func (m *Manager) forget(i id, v *volume) bool {
	m.mu.Lock()
	v.unstaging = false
	unused := len(v.pods) == 0
	if unused {
		delete(m.volumes, i)
	}
	m.mu.Unlock()
	if unused {
		m.Changed()
	}
	return true
}

// InUse are the volumes that must not be detached from this node, in the order of their names.
func (m *Manager) InUse() []corev1.UniqueVolumeName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []corev1.UniqueVolumeName
	for i, v := range m.volumes {
		if !v.paths.inline && m.attaches(i.driver) {
			names = append(names, i.unique())
		}
	}
	slices.SortFunc(names, func(a, b corev1.UniqueVolumeName) int { return strings.Compare(string(a), string(b)) })
	return names
}

// podsOf are those that use volumes of a driver, or wait for them.
func (m *Manager) podsOf(driver string) (pods []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, v := range m.volumes {
		if i.driver == driver {
			pods = slices.AppendSeq(pods, maps.Keys(v.pods))
		}
	}
	return pods
}

// attaches tells whether a driver's volumes have to be attached to a node. As upstream, one without a CSIDriver object's are.
func (m *Manager) attaches(driver string) bool {
	found, err := m.objects.Get(driver)
	return err != nil || found.Spec.AttachRequired == nil || *found.Spec.AttachRequired
}
