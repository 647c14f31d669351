package usage

import (
	"time"

	"github.com/opencontainers/cgroups"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
)

func value(number uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: number} }

// CPU leaves the rate to the caller: it knows between which two samples it wants one.
func CPU(of cgroup.Usage) *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{
		Timestamp: time.Now().UnixNano(), UsageCoreNanoSeconds: value(of.CPUNanoseconds), Psi: pressure(of.CPUPressure),
	}
}

// IO is nil where the kernel does not tell of the pressure: CRI has nothing else of it.
func IO(of cgroup.Usage) *runtimeapi.IoUsage {
	psi := pressure(of.IOPressure)
	if psi == nil {
		return nil
	}
	return &runtimeapi.IoUsage{Timestamp: time.Now().UnixNano(), Psi: psi}
}

func pressure(of *cgroups.PSIStats) *runtimeapi.PsiStats {
	if of == nil {
		return nil
	}
	return &runtimeapi.PsiStats{Full: pressureData(of.Full), Some: pressureData(of.Some)}
}

func pressureData(d cgroups.PSIData) *runtimeapi.PsiData {
	return &runtimeapi.PsiData{Total: d.Total * uint64(time.Microsecond), Avg10: d.Avg10, Avg60: d.Avg60, Avg300: d.Avg300}
}

// Memory has what may still be used if there is a limit.
func Memory(of cgroup.Usage) *runtimeapi.MemoryUsage {
	memory := &runtimeapi.MemoryUsage{
		Timestamp: time.Now().UnixNano(), WorkingSetBytes: value(of.WorkingSetBytes), UsageBytes: value(of.MemoryBytes),
		RssBytes: value(of.RSSBytes), PageFaults: value(of.PageFaults), MajorPageFaults: value(of.MajorPageFaults),
		Psi: pressure(of.MemoryPressure),
	}
	if of.MemoryLimitBytes > 0 {
		memory.AvailableBytes = value(of.MemoryLimitBytes - min(of.MemoryLimitBytes, of.WorkingSetBytes))
	}
	return memory
}
