package embedded

import (
	"context"
	"os"
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/leftovers"
)

// kubeletGroup makes the group of a pod as a kubelet does.
func kubeletGroup(t *testing.T) (path string, group *cgroup.Group) {
	t.Helper()
	root := "/kubelet-test-" + newID(sandboxIDBytes)[:8]
	path = root + "/burstable/podx"
	group, err := cgroup.Open(path)
	if err == nil {
		err = group.Create(cgroup.Limits{MemoryBytes: 1 << 30})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		outermost, err := cgroup.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		if outermost.TrimEmpty(); !outermost.Changed().IsZero() {
			t.Errorf("%s is left", root)
		}
	})
	return path, group
}

// TestCgroupsOfAKubelet: a pod is in the group that its kubelet made, before and after a restart, and the group outlives it.
func TestCgroupsOfAKubelet(t *testing.T) {
	path, group := kubeletGroup(t)
	config := testConfig(t)
	config.GivenCgroups = true
	r := open(t, config)
	p := runPod(t, r, func(c *runtimeapi.PodSandboxConfig) { c.Linux = &runtimeapi.LinuxPodSandboxConfig{CgroupParent: path} })
	id := p.start(containerConfig("stubborn"))
	p.waitLog(id, "stubborn")
	pids, err := group.Processes()
	if err != nil || !slices.Contains(pids, p.pid(id)) || !slices.Contains(pids, p.shimPID()) {
		t.Errorf("%v are in the group, %v", pids, err)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.runtime = open(t, config)
	if state := p.status(id).State; state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("after a restart it is %s", state)
	}
	removeAll(t, p.runtime)
	if pids, err := group.Processes(); group.Changed().IsZero() || len(pids) > 0 || err != nil {
		t.Errorf("the kubelet's group: gone or with %v, %v", pids, err)
	}
}

// TestLeftoversInGroupsOfAKubelet are found by what runs in them.
func TestLeftoversInGroupsOfAKubelet(t *testing.T) {
	path, group := kubeletGroup(t)
	config := testConfig(t)
	config.GivenCgroups = true
	r := open(t, config)
	p := runPod(t, r, func(c *runtimeapi.PodSandboxConfig) { c.Linux = &runtimeapi.LinuxPodSandboxConfig{CgroupParent: path} })
	id := p.start(containerConfig("stubborn"))
	pids := []int{p.pid(id), p.shimPID()}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(config.DataDir + "/sandboxes/" + p.id + "/record.json"); err != nil {
		t.Fatal(err)
	}
	pods, groups, _, err := leftovers.Remove(config.DataDir)
	if err != nil || len(pods) != 1 || !slices.Contains(groups, path+"/"+p.id) {
		t.Errorf("pods %v, groups %v, %v", pods, groups, err)
	}
	nothingIsLeft(t, config.DataDir, r.cgroupRoot(), p.id, pids)
	if group.Changed().IsZero() {
		t.Error("the kubelet's group is gone")
	}
}
