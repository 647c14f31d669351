package podconfig

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestAnotherPeriodIsNoResize: a container keeps the quota that an earlier agent set, if it is the same part of a CPU.
func TestAnotherPeriodIsNoResize(t *testing.T) {
	quota := func(us, period int64) *runtimeapi.LinuxContainerResources {
		return &runtimeapi.LinuxContainerResources{CpuQuota: us, CpuPeriod: period}
	}
	for _, c := range []struct {
		a, b *runtimeapi.LinuxContainerResources
		want bool
	}{
		{quota(50000, 100000), quota(10000, 20000), true},
		{quota(50000, 100000), quota(50000, 20000), false},
		{quota(50000, 100000), quota(0, 0), false},
		{quota(0, 0), quota(0, 0), true},
		{quota(50000, 0), quota(50000, 100000), true}, // a runtime that tells no period
	} {
		if got := SameLimits(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %t", c.a, c.b, got)
		}
	}
}
