package podconfig

import (
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// SameLimits reports whether they give the same share of the machine.
func SameLimits(a, b *runtimeapi.LinuxContainerResources) bool {
	return a.CpuShares == b.CpuShares && sameQuota(a, b) && a.MemoryLimitInBytes == b.MemoryLimitInBytes
}

// sameQuota compares parts of a CPU: the node's period may have changed since a was set.
func sameQuota(a, b *runtimeapi.LinuxContainerResources) bool {
	if a.CpuQuota <= 0 || b.CpuQuota <= 0 || a.CpuPeriod <= 0 || b.CpuPeriod <= 0 {
		return a.CpuQuota == b.CpuQuota
	}
	return a.CpuQuota*b.CpuPeriod == b.CpuQuota*a.CpuPeriod
}

// Larger has the larger of each; no limit is larger than any.
func Larger(a, b *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	out := proto.CloneOf(b)
	out.CpuShares = max(a.CpuShares, b.CpuShares)
	out.MemoryLimitInBytes = largerLimit(a.MemoryLimitInBytes, b.MemoryLimitInBytes)
	out.CpuQuota = largerLimit(a.CpuQuota, b.CpuQuota)
	return out
}

func largerLimit(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}
