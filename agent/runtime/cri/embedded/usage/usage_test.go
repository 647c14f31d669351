package usage

import (
	"testing"

	"github.com/opencontainers/cgroups"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
)

func TestThePressureInNanoseconds(t *testing.T) {
	psi := &cgroups.PSIStats{Some: cgroups.PSIData{Avg10: 1.5, Total: 2000}, Full: cgroups.PSIData{Avg300: .5, Total: 1000}}
	used := cgroup.Usage{CPUPressure: psi, MemoryPressure: psi, IOPressure: psi}
	for _, got := range []interface {
		GetTotal() uint64
		GetAvg10() float64
	}{CPU(used).Psi.Some, Memory(used).Psi.Some, IO(used).Psi.Some} {
		if got.GetTotal() != 2_000_000 || got.GetAvg10() != 1.5 {
			t.Errorf("%v", got)
		}
	}
	if full := IO(used).Psi.Full; full.Total != 1_000_000 || full.Avg300 != .5 {
		t.Errorf("%v", full)
	}
	if silent := (cgroup.Usage{}); IO(silent) != nil || CPU(silent).Psi != nil || Memory(silent).Psi != nil || Memory(silent).AvailableBytes != nil {
		t.Error("a kernel that does not tell is made to")
	}
}

func TestWhatALimitLeaves(t *testing.T) {
	if got := Memory(cgroup.Usage{WorkingSetBytes: 3, MemoryLimitBytes: 10}); got.AvailableBytes.Value != 7 {
		t.Errorf("%v", got)
	}
}
