package embedded

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
)

// groupFile is the content of the first of the files that a group has: v1 and v2 call them differently.
func groupFile(t *testing.T, path string, names ...string) string {
	t.Helper()
	group, err := cgroup.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, dir := range group.Dirs() {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return strings.TrimSpace(string(data))
			}
		}
	}
	t.Fatalf("group %s has none of %v", path, names)
	return ""
}

func cpuShares(t *testing.T, path string) string {
	t.Helper()
	return groupFile(t, path, "cpu.shares", "cpu.weight")
}

// sharesHere is what the machine's hierarchy calls these shares.
func sharesHere(t *testing.T, shares uint64) string {
	t.Helper()
	path := "/setpoint-shares-test"
	group, err := cgroup.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := group.Create(cgroup.Limits{CPUShares: shares}); err != nil {
		t.Fatal(err)
	}
	defer group.Destroy()
	return cpuShares(t, path)
}

func TestClassesWeighWhatTheirPodsAskFor(t *testing.T) {
	r := newRuntime(t)
	run := func(parent string, shares int64) *pod {
		return runPod(t, r, func(c *runtimeapi.PodSandboxConfig) {
			c.Linux = &runtimeapi.LinuxPodSandboxConfig{CgroupParent: parent, Resources: &runtimeapi.LinuxContainerResources{CpuShares: shares}}
		})
	}
	run("/kubepods/besteffort/poda", 2)
	run("/kubepods/besteffort/podb", 2)
	run("/kubepods/burstable/podc", 512)
	leaving := run("/kubepods/burstable/podd", 256)
	root := r.cgroupRoot()
	check := func(path string, want uint64) {
		t.Helper()
		if got := cpuShares(t, root+path); got != sharesHere(t, want) {
			t.Errorf("%s weighs %s, want that of %d", path, got, want)
		}
	}
	check("/kubepods/besteffort", 2)
	check("/kubepods/besteffort/poda", 2)
	check("/kubepods/burstable", 768)
	check("/kubepods/burstable/podd", 256)
	check("/kubepods", uint64(runtime.NumCPU())*1024)
	if err := r.RemovePodSandbox(t.Context(), leaving.id); err != nil {
		t.Fatal(err)
	}
	check("/kubepods/burstable", 512)
}

func TestPodsCannotTakeAllProcessNumbers(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, func(c *runtimeapi.PodSandboxConfig) {
		c.Linux = &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/besteffort/poda"}
	})
	machine, err := pidsMax()
	if err != nil {
		t.Fatal(err)
	}
	for path, percent := range map[string]int64{r.cgroupRoot() + "/kubepods": podsPIDsPercent, r.cgroupRoot() + "/kubepods/besteffort/poda/" + p.id: podPIDsPercent} {
		if got := groupFile(t, path, "pids.max"); got != strconv.FormatInt(machine*percent/100, 10) {
			t.Errorf("%s: %s of %d", path, got, machine)
		}
	}
}

// TestMergedLimitsOfHugePages: an update says all sizes, and one that says none changes none.
func TestMergedLimitsOfHugePages(t *testing.T) {
	pages := func(bytes uint64) *runtimeapi.LinuxContainerResources {
		return &runtimeapi.LinuxContainerResources{HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB", Limit: bytes}}}
	}
	merged := mergeResources(mergeResources(pages(1), pages(2)), &runtimeapi.LinuxContainerResources{CpuShares: 5})
	if len(merged.HugepageLimits) != 1 || limitsOf(merged).HugePageBytes["2MB"] != 2 {
		t.Errorf("%v", merged)
	}
}
