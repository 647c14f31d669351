package node

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPressureLastsFiveMinutesMore(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p Pressure
	for _, c := range []struct {
		after time.Duration
		found pressures
		want  []corev1.NodeConditionType
	}{
		{0, pressures{}, nil},
		{time.Minute, pressures{memory: true, disk: true}, []corev1.NodeConditionType{"DiskPressure", "MemoryPressure"}},
		{2 * time.Minute, pressures{disk: true}, []corev1.NodeConditionType{"DiskPressure", "MemoryPressure"}},
		{6*time.Minute - 1, pressures{}, []corev1.NodeConditionType{"DiskPressure", "MemoryPressure"}},
		{6 * time.Minute, pressures{}, []corev1.NodeConditionType{"DiskPressure"}},
		{6*time.Minute + 30*time.Second, pressures{pids: true}, []corev1.NodeConditionType{"DiskPressure", "PIDPressure"}},
		{7 * time.Minute, pressures{}, []corev1.NodeConditionType{"PIDPressure"}},
		{time.Hour, pressures{}, nil},
	} {
		p.saw(began.Add(c.after), c.found)
		if got := p.Now(); !slices.Equal(got, c.want) {
			t.Errorf("after %v: got %v, want %v", c.after, got, c.want)
		}
	}
}
