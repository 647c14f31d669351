package embedded

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/leftovers"
)

// TestLeftoversAreRemoved when their agent has ended, whatever of them has been destroyed before; the pods of another
// data directory go on.
func TestLeftoversAreRemoved(t *testing.T) {
	for name, destroy := range map[string]func(config Config, shim int){
		"nothing":          func(Config, int) {},
		"records":          func(config Config, _ int) { _ = os.RemoveAll(config.DataDir) },
		"records and shim": func(config Config, shim int) { _ = os.RemoveAll(config.DataDir); end(t, shim) },
		"what records say": func(config Config, _ int) { damageAll(t, config) },
	} {
		t.Run(name, func(t *testing.T) {
			other := newRuntime(t)
			survivor := runPod(t, other, nil).start(containerConfig("stubborn"))
			config := testConfig(t)
			r := open(t, config)
			p := runPod(t, r, func(c *runtimeapi.PodSandboxConfig) {
				c.Linux = &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/burstable/podx"}
			})
			// With the host's processes, so that it outlives its shim.
			container := containerConfig("stubborn")
			container.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE}}
			id := p.start(container)
			p.waitLog(id, "stubborn")
			pids := []int{p.pid(id), p.shimPID()}
			root := r.cgroupRoot()
			if err := r.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			destroy(config, p.shimPID())
			records := name == "nothing"

			pods, groups, _, err := leftovers.Remove(config.DataDir)
			if err != nil || len(pods) != 1 || pods[0].ID != p.id || records && pods[0].Name != "default/"+p.config.Metadata.Name {
				t.Errorf("pods %v, %v", pods, err)
			}
			if !slices.Contains(groups, root+"/kubepods/burstable/podx/"+p.id) {
				t.Errorf("groups %v", groups)
			}
			nothingIsLeft(t, config.DataDir, root, p.id, pids)
			if err := os.RemoveAll(config.DataDir); err != nil {
				t.Errorf("the directory: %v", err)
			}
			if pods, groups, mounts, err := leftovers.Remove(config.DataDir); len(pods)+len(groups)+len(mounts) != 0 || err != nil {
				t.Errorf("again: %v %v %v %v", pods, groups, mounts, err)
			}
			if full := (&pod{t: t, runtime: other}).status(survivor); full.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
				t.Errorf("a container of another data directory: %v", full.State)
			}
		})
	}
}

func nothingIsLeft(t *testing.T, dataDir, root, id string, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, func() error { return gone(pid) })
	}
	if roots, err := cgroup.Roots(root); len(roots) != 0 || err != nil {
		t.Errorf("cgroups left: %v %v", roots, err)
	}
	if mounts, err := machine.MountsBelow(dataDir); len(mounts) != 0 || err != nil {
		t.Errorf("mounts left: %v %v", mounts, err)
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Attrs().Name == network.HostInterface(id) {
			t.Errorf("its interface %s is left", l.Attrs().Name)
		}
	}
}

func end(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	eventually(t, func() error { return gone(pid) })
}

func damageAll(t *testing.T, config Config) {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(config.DataDir, "*", "*", recordName))
	if err != nil || len(records) != 2 {
		t.Fatalf("records %v %v", records, err)
	}
	for _, record := range records {
		damage(t, filepath.Dir(record), "{")
	}
}
