package volumes

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
)

// teller is a driver that knows how full its volumes are.
type teller struct{ Drivers }

func (teller) Stats(context.Context, types.UID, *corev1.PersistentVolume) (*stats.FsStats, error) {
	full := uint64(7)
	return &stats.FsStats{UsedBytes: &full}, nil
}

func TestWhoKnowsHowFullAVolumeIs(t *testing.T) {
	m := New(Config{Drivers: teller{}})
	dir, block := t.TempDir(), corev1.PersistentVolumeBlock
	of := func(s corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: s}}
	}
	local := corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: dir}}
	if got, err := m.Measure(t.Context(), "u", of(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}})); err != nil || *got.UsedBytes != 7 {
		t.Errorf("a driver's: %+v, %v", got, err)
	}
	got, err := m.Measure(t.Context(), "u", of(local))
	if err != nil || got.Time.IsZero() || *got.CapacityBytes == 0 || *got.UsedBytes+*got.AvailableBytes > *got.CapacityBytes || *got.InodesUsed > *got.Inodes {
		t.Errorf("a file system's: %+v, %v", got, err)
	}
	device := of(local)
	device.Spec.VolumeMode = &block
	for what, pv := range map[string]*corev1.PersistentVolume{
		"a block device": device, "a hostPath": of(corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}),
	} {
		if _, err := m.Measure(t.Context(), "u", pv); !errors.Is(err, csi.ErrNoStats) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := m.Measure(t.Context(), "u", of(corev1.PersistentVolumeSource{})); !errors.Is(err, ErrUnsupported) {
		t.Errorf("what cannot be mounted: %v", err)
	}
}
