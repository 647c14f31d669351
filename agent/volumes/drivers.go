package volumes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
)

// LimitError says that the node has no place for a volume: the pod has to run elsewhere.
type LimitError = csi.LimitError

// Drivers mount the volumes of CSI drivers.
type Drivers interface {
	// Mount makes a volume ready for a pod, or does what is due for one that is.
	Mount(ctx context.Context, v csi.Volume) (csi.Mounted, error)
	// Unmount takes all volumes from a pod, of which its UID is enough.
	Unmount(ctx context.Context, pod *corev1.Pod) error
	// Follows tells whether a pod has volumes at which Mount has to look from time to time.
	Follows(pod types.UID) bool
	// Stats asks a driver how full a pod's volume is.
	Stats(ctx context.Context, pod types.UID, pv *corev1.PersistentVolume) (*stats.FsStats, error)
}

// byDriver has a CSI driver make a volume ready.
func (m *Manager) byDriver(ctx context.Context, in Input, of *corev1.Volume, v csi.Volume) (Place, error) {
	v.Pod, v.Name = in.Pod, of.Name
	v.Token = func(ctx context.Context, audience string, seconds int64) (string, time.Time, error) {
		have, err := m.token(ctx, in.Pod, tokenKey{in.Pod.UID, v.Name, "csi/" + audience}, audience, seconds)
		return have.token, have.expires, err
	}
	mounted, err := m.Drivers.Mount(ctx, v)
	place := Place{mounted.Path, mounted.Relabel && !readOnlySource(in.Pod, of.Name)}
	if err != nil || !mounted.GiveGroup || !in.Setup {
		return place, err
	}
	return place, m.setGroup(ctx, in.Pod, mounted.Path)
}

// hasDriver tells whether a volume is one of a CSI driver that registers.
func (m *Manager) hasDriver(pv *corev1.PersistentVolume) bool {
	return m.Drivers != nil && pv.Spec.CSI != nil && !m.isLocal(pv)
}
