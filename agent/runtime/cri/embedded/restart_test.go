package embedded

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestRestartLosesNothing closes the runtime while a container writes and another ends, and opens it again.
func TestRestartLosesNothing(t *testing.T) {
	config := testConfig(t)
	first := open(t, config)
	p := runPod(t, first, nil)
	ticking := p.start(containerConfig("tick"))
	leaving := p.start(named("leaving", "sleep"))
	created := p.create(named("created", "say", "0"))
	p.waitLog(ticking, "tick 3")
	p.waitLog(leaving, "sleeping")
	leaver := p.pid(leaving)
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(leaver, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	second := open(t, config)
	t.Cleanup(func() { removeAll(t, second) })
	again := &pod{t, second, p.config, p.id}
	if full := again.exit(leaving); full.ExitCode != 7 || again.log(leaving) != "sleeping\nterminated\n" {
		t.Errorf("exit while away: %d, log %q", full.ExitCode, again.log(leaving))
	}
	if full := again.status(ticking); full.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Fatalf("container after the restart: %v", full)
	}
	again.waitLog(ticking, "tick 30\n")
	for i, line := range strings.Split(strings.TrimSpace(again.log(ticking)), "\n") {
		if line != "tick "+strconv.Itoa(i) {
			t.Fatalf("line %d of the log is %q", i, line)
		}
	}
	if _, _, err := second.ExecSync(t.Context(), ticking, program("say", "0"), patience); err != nil {
		t.Errorf("exec after the restart: %v", err)
	}
	if err := second.StartContainer(t.Context(), created); err != nil {
		t.Errorf("start what the first process created: %v", err)
	}
	other := runPod(t, second, nil)
	if again.ip() == other.ip() || !netip.MustParseAddr(other.ip()).IsValid() {
		t.Errorf("addresses %s and %s", again.ip(), other.ip())
	}
}

func TestDeadShimMeansExitUnknown(t *testing.T) {
	for name, restart := range map[string]bool{"while watched": false, "while away": true} {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t)
			r := open(t, config)
			p := runPod(t, r, nil)
			id := p.start(containerConfig("stubborn"))
			p.waitLog(id, "stubborn")
			victim := p.pid(id)
			shimPID := p.shimPID()
			if restart {
				if err := r.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(shimPID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if restart {
				if !confinesAll(t, r) && !r.selinux.Enabled() { // else it is the restart that ends it
					eventually(t, func() error { return gone(victim) })
				}
				r = open(t, config)
			}
			t.Cleanup(func() { removeAll(t, r) })
			p.runtime = r
			if full := p.exit(id); full.ExitCode != 137 || full.Reason != "Unknown" {
				t.Errorf("exit %d, reason %s", full.ExitCode, full.Reason)
			}
			p.isOver() // at once: else somebody starts the container again in there
			eventually(t, func() error { return gone(victim) })
			if _, err := r.CreateContainer(t.Context(), p.id, containerConfig("say", "0"), p.config); err == nil {
				t.Error("created a container in a dead sandbox")
			}
		})
	}
}

// TestAPodOfAnotherRange: a node that was made anew has another range. A pod that runs at an address of the former one ends, and one that is
// made instead is reached.
func TestAPodOfAnotherRange(t *testing.T) {
	config := testConfig(t)
	r := open(t, config)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("stubborn"))
	p.waitLog(id, "stubborn")
	victim := p.pid(id)
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	config.PodCIDR = netip.MustParsePrefix("10.199.8.0/24")
	r = open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	p.runtime = r
	p.isOver()
	eventually(t, func() error { return gone(victim) })
	if again := runPod(t, r, nil); !config.PodCIDR.Contains(netip.MustParseAddr(again.ip())) {
		t.Errorf("the next pod has the address %s", again.ip())
	}
}

// TestAShimThatHangs keeps neither another runtime from opening nor its pod from ending.
func TestAShimThatHangs(t *testing.T) {
	config := testConfig(t)
	r := open(t, config)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("stubborn"))
	if err := syscall.Kill(p.shimPID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	r = open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	p.runtime = r
	s, err := r.sandbox(p.id)
	if err != nil {
		t.Fatal(err)
	}
	s.shim.Patience = 20 * time.Millisecond
	if err := r.StopContainer(t.Context(), id, 1); err != nil {
		t.Error(err)
	}
	if full := p.exit(id); full.ExitCode != 137 || full.Reason != reasonUnknown {
		t.Errorf("exit %d, reason %s", full.ExitCode, full.Reason)
	}
	if err := r.RemovePodSandbox(t.Context(), p.id); err != nil {
		t.Error(err)
	}
}

// isOver says that the pod's sandbox is not ready any more, and that nobody has its addresses.
func (p *pod) isOver() {
	p.t.Helper()
	response, err := p.runtime.PodSandboxStatus(p.t.Context(), p.id, false)
	if err != nil || response.Status.State == runtimeapi.PodSandboxState_SANDBOX_READY {
		p.t.Errorf("sandbox is still ready: %v", err)
	}
	if network := response.GetStatus().GetNetwork(); network.GetIp() != "" || len(network.GetAdditionalIps()) > 0 {
		p.t.Errorf("a dead sandbox has the address %s", network)
	}
}

func TestAShimThatDiesBeforeAContainerStarts(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.create(containerConfig("stubborn"))
	if err := syscall.Kill(p.shimPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := r.StartContainer(t.Context(), id)
	if err == nil {
		t.Fatal("started a container without a shim")
	}
	p.isOver()
	if status.Code(err) == codes.FailedPrecondition { // it was known already
		return
	}
	if full := p.exit(id); !strings.HasSuffix(full.Message, "the pod's shim has ended") || full.Reason != reasonStartError {
		t.Errorf("reason %s, message %q", full.Reason, full.Message)
	}
}

// TestAStartThatCannotBeRecordedLeavesNothing: the container that is made instead must not run beside it.
func TestAStartThatCannotBeRecordedLeavesNothing(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.create(containerConfig("stubborn"))
	c, err := r.container(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(c.dir, recordName+".tmp"), 0o700); err != nil { // where the next record would be written
		t.Fatal(err)
	}
	if err := r.StartContainer(t.Context(), id); err == nil || !strings.Contains(err.Error(), "write record") {
		t.Errorf("start: %v", err)
	}
	if full := p.exit(id); full.Reason != reasonStartError {
		t.Errorf("reason %s, message %q", full.Reason, full.Message)
	}
	if running, err := c.group.Processes(); len(running) > 0 || err != nil {
		t.Errorf("still runs: %d %v", running, err)
	}
}

func TestASandboxIsRemovedThoughNothingCanBeWritten(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	p.start(containerConfig("stubborn"))
	dir := filepath.Join(r.sandboxesDir(), p.id)
	if err := os.Mkdir(filepath.Join(dir, recordName+".tmp"), 0o700); err != nil { // where the next record would be written
		t.Fatal(err)
	}
	if err := r.StopPodSandbox(t.Context(), p.id); err == nil || !strings.Contains(err.Error(), errUnrecorded.Error()) {
		t.Errorf("stop: %v", err)
	}
	if err := r.RemovePodSandbox(t.Context(), p.id); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("left behind: %s (%v)", dir, err)
	}
}

func TestUnfinishedSandboxIsRemoved(t *testing.T) {
	config := testConfig(t)
	r := open(t, config)
	s, err := r.newSandbox(podConfig(t, "half"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := writeRecord(s.dir, s.record); err != nil {
		t.Fatal(err)
	}
	if err := s.mountShm(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(r.containersDir(), "stray"), 0o711); err != nil {
		t.Fatal(err)
	}
	r.Close(context.Background())
	r = open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	if list, _ := r.ListPodSandbox(t.Context(), nil); len(list) != 0 {
		t.Errorf("sandboxes: %v", list)
	}
	for _, dir := range []string{r.sandboxesDir(), r.containersDir()} {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestLogRotation(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.start(containerConfig("tick"))
	p.waitLog(id, "tick 3")
	path := p.status(id).LogPath
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := r.ReopenContainerLog(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.waitLog(id, "tick")
	before, err := os.ReadFile(path + ".old")
	if err != nil {
		t.Fatal(err)
	}
	after := p.log(id)
	last := strings.TrimSpace(string(before)[strings.LastIndex(strings.TrimSpace(string(before)), " "):])
	number, err := strconv.Atoi(last)
	if err != nil || !strings.HasPrefix(after, fmt.Sprintf("tick %d\n", number+1)) {
		t.Errorf("old log ends with %q, new one begins %.20q", last, after)
	}
}

func TestStatsAndLimits(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	config := containerConfig("look", "read=/sys/fs/cgroup/memory/memory.limit_in_bytes", "read=/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "read=/sys/fs/cgroup/cpu/cpu.shares")
	config.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 96 << 20, CpuQuota: 50000, CpuPeriod: 100000, CpuShares: 512}
	limited := p.start(config)
	p.exit(limited)
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // v1: the files have these names
		want := "memory.limit_in_bytes: 100663296\nread=/sys/fs/cgroup/cpu/cpu.cfs_quota_us: 50000\nread=/sys/fs/cgroup/cpu/cpu.shares: 512\n"
		if got := p.log(limited); !strings.HasSuffix(got, want) {
			t.Errorf("limits seen inside: %s", got)
		}
	}
	id := p.start(named("busy", "tick"))
	p.waitLog(id, "tick 2")
	stats, err := r.ContainerStats(t.Context(), id)
	if err != nil || stats.Cpu.UsageCoreNanoSeconds.Value == 0 || stats.Memory.WorkingSetBytes.Value == 0 {
		t.Errorf("container stats %v %v", stats, err)
	}
	pods, err := r.ListPodSandboxStats(t.Context(), nil)
	if err != nil || len(pods) != 1 || len(pods[0].Linux.Containers) != 1 || pods[0].Linux.Network.DefaultInterface.Name != "eth0" {
		t.Errorf("pod stats %v %v", pods, err)
	}
	update := &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 128 << 20}}
	if err := r.UpdateContainerResources(t.Context(), id, update); err != nil {
		t.Fatal(err)
	}
	usage, err := mustContainer(t, r, id).group.Usage()
	if err != nil || usage.MemoryLimitBytes != 128<<20 || p.status(id).Resources.Linux.MemoryLimitInBytes != 128<<20 {
		t.Errorf("after the update: %+v %v", usage, err)
	}
}

func named(name string, args ...string) *runtimeapi.ContainerConfig {
	config := containerConfig(args...)
	config.Metadata.Name, config.LogPath = name, name+"/0.log"
	return config
}

func mustContainer(t testing.TB, r *Runtime, id string) *container {
	t.Helper()
	c, err := r.container(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *pod) pid(id string) int {
	c := mustContainer(p.t, p.runtime, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record.PID
}

func (p *pod) shimPID() int {
	s, err := p.runtime.sandbox(p.id)
	if err != nil {
		p.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.ShimPID
}

func (p *pod) ip() string {
	response, err := p.runtime.PodSandboxStatus(p.t.Context(), p.id, false)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.Status.Network.Ip
}

func gone(pid int) error {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && !strings.Contains(string(state), ") Z ") {
		return fmt.Errorf("process %d still runs at %s", pid, time.Now())
	}
	return nil
}

// TestTightLimitsLeaveRoomForStarting runs a container whose limit the runtime's own first stage must not use up.
func TestTightLimitsLeaveRoomForStarting(t *testing.T) {
	r := newRuntime(t)
	limit := int64(24 << 20)
	if libraries() != nil { // not the product's kind of executable: the race detector alone needs more
		limit = 1 << 30
	}
	tight := &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: limit, MemorySwapLimitInBytes: limit}
	p := runPod(t, r, func(config *runtimeapi.PodSandboxConfig) {
		config.Linux = &runtimeapi.LinuxPodSandboxConfig{Resources: tight, CgroupParent: "/kubepods/burstable/podx"}
	})
	config := containerConfig("sleep")
	config.Linux.Resources = tight
	id := p.start(config)
	p.waitLog(id, "sleeping")
	if _, stderr, err := r.ExecSync(t.Context(), id, program("say", "0"), patience); err != nil {
		t.Errorf("exec: %v %s", err, stderr)
	}
	if err := r.StopContainer(t.Context(), id, 10); err != nil {
		t.Fatal(err)
	}
	if full := p.status(id); full.ExitCode != 7 {
		t.Errorf("exit %d, %s", full.ExitCode, full.Reason)
	}
}

// TestFoldersAreClosedToOtherUsers: what containers wrote, setuid files too, and what images hold is root's to look at.
func TestFoldersAreClosedToOtherUsers(t *testing.T) {
	config := testConfig(t)
	folders := []string{".", "sandboxes", "containers", "images", "images/layers", "images/records"}
	for _, name := range folders { // made before, by somebody else
		if err := os.MkdirAll(filepath.Join(config.DataDir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(config.DataDir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open(t, config)
	for _, name := range folders {
		if info, err := os.Stat(filepath.Join(config.DataDir, name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}
