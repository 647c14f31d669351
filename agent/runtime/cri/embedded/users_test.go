package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/leftovers"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/trial"
)

const (
	testUsersFirst = 200 << 16
	testUsers      = 1 << 16
)

// ownUsers gives the pod a user namespace.
func ownUsers(config *runtimeapi.PodSandboxConfig) {
	ids := []*runtimeapi.IDMapping{{HostId: testUsersFirst, Length: testUsers}}
	config.Linux.SecurityContext.NamespaceOptions.UsernsOptions =
		&runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}
}

func wantFacts(t *testing.T, got, want map[string]string) {
	t.Helper()
	for fact, answer := range want {
		if !strings.Contains(got[fact], answer) {
			t.Errorf("%s: %q, want %q", fact, got[fact], answer)
		}
	}
}

func TestUsersOfAPod(t *testing.T) {
	p := runPod(t, newRuntime(t), func(config *runtimeapi.PodSandboxConfig) {
		ownUsers(config)
		config.Linux.Sysctls = map[string]string{"net.ipv4.ping_group_range": "0 1000"}
	})
	wantFacts(t, p.facts(containerConfig("pid", "uid", "read=/proc/self/uid_map", "read=/proc/self/gid_map", "list=/sys/class/net", "hostname",
		"read=/proc/sys/net/ipv4/ping_group_range", "write=/proc/sys/kernel/domainname", "write=/etc/hosts", "write=/etc/new",
		"write=/dev/shm/x", "write=/dev/stdout", "owner=/etc/new", "owner=/setpoint", "owner=/dev/shm", "owner=/dev/pts", "status=CapBnd")), map[string]string{
		"pid": "1", "uid": "0 0 [0]", "read=/proc/self/uid_map": "0   13107200      65536", "read=/proc/self/gid_map": "0   13107200      65536",
		"list=/sys/class/net": "eth0 lo", "hostname": "testusersofapod", "read=/proc/sys/net/ipv4/ping_group_range": "0\t1000",
		"write=/proc/sys/kernel/domainname": "read-only", "write=/etc/hosts": "<nil>", "write=/etc/new": "<nil>", "write=/dev/shm/x": "<nil>",
		"xwrite=/dev/stdout": "<nil>", "owner=/etc/new": "0:0", "owner=/setpoint": "0:0", "owner=/dev/shm": "0:0", "owner=/dev/pts": "0:0",
		"status=CapBnd": "00000000a80425fb",
	})
}

// TestRootOfAPodIsNobodyOutside looks at the process and at what it wrote from outside.
func TestRootOfAPodIsNobodyOutside(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, ownUsers)
	dir := t.TempDir()
	config := containerConfig("sleep")
	config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: dir, ContainerPath: "/volume"})
	id := p.start(config)
	p.waitLog(id, "sleeping")
	c, err := r.container(id)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := r.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "look", "uid", "write=/volume/x", "write=/x",
		"read=/proc/self/uid_map"}, patience)
	if err != nil || !strings.Contains(string(out), "uid: 0 0 [0]\nwrite=/volume/x: <nil>\nwrite=/x: <nil>\nread=/proc/self/uid_map: 0   13107200") {
		t.Errorf("exec: %v\n%s", err, out)
	}
	for name, uid := range map[string]uint32{
		fmt.Sprintf("/proc/%d", c.record.PID): testUsersFirst,
		filepath.Join(c.dir, "upper", "x"):    testUsersFirst, // nothing of the pod's is root's
		filepath.Join(dir, "x"):               0,              // a volume is as any other pod would have written it
	} {
		var stat unix.Stat_t
		if err := unix.Stat(name, &stat); err != nil || stat.Uid != uid || stat.Gid != uid {
			t.Errorf("%s belongs to %d:%d: %v", name, stat.Uid, stat.Gid, err)
		}
	}
}

func TestUsersThatShareProcesses(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, func(config *runtimeapi.PodSandboxConfig) {
		ownUsers(config)
		config.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD
	})
	got := p.facts(inSharedPod(containerConfig("pid", "uid", "read=/proc/1/cmdline", "read=/proc/self/uid_map", "write=/dev/stdout")))
	if got["pid"] == "1" {
		t.Error("the container is process 1")
	}
	wantFacts(t, got, map[string]string{
		"uid": "1000 0 [0]", "read=/proc/1/cmdline": "setpoint-pause", "read=/proc/self/uid_map": "0   13107200      65536",
		"xwrite=/dev/stdout": "<nil>",
	})
	for range 5 { // some end before the shim is told their number
		if full := p.exit(p.start(inSharedPod(containerConfig("say", "3", "hello")))); full.ExitCode != 3 {
			t.Fatalf("exit %d", full.ExitCode)
		}
	}
}

// TestUsersLiveAndEndAsOthers is what shim and runtime must not confuse: the process that boots is not the one that runs.
func TestUsersLiveAndEndAsOthers(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, ownUsers)
	for range 5 {
		if full := p.exit(p.start(containerConfig("say", "3", "hello"))); full.ExitCode != 3 {
			t.Fatalf("exit %d", full.ExitCode)
		}
	}
	stopped := p.start(containerConfig("sleep"))
	p.waitLog(stopped, "sleeping")
	if err := r.StopContainer(t.Context(), stopped, 10); err != nil || p.status(stopped).ExitCode != 7 {
		t.Errorf("stopped: %v, exit %d", err, p.status(stopped).ExitCode)
	}
	terminal := containerConfig("look", "tty")
	terminal.Tty = true
	if id := p.start(terminal); p.exit(id).ExitCode != 0 || !strings.Contains(p.log(id), "tty: 0x0") {
		t.Errorf("terminal: %s", p.log(id))
	}
	missing := containerConfig()
	missing.Command = []string{"nosuch"}
	id := p.create(missing)
	if err := r.StartContainer(t.Context(), id); err == nil || p.status(id).ExitCode != 127 {
		t.Errorf("no command: %v, exit %d", err, p.status(id).ExitCode)
	}
	stranger := containerConfig("look", "uid")
	stranger.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{RunAsUser: &runtimeapi.Int64Value{Value: testUsers}}
	if err := r.StartContainer(t.Context(), p.create(stranger)); err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("a user that the namespace does not have: %v", err)
	}
}

// TestAPrivilegedContainerWithUsers has the host's devices, which do not let it in: they belong to nobody it knows.
func TestAPrivilegedContainerWithUsers(t *testing.T) {
	p := runPod(t, newRuntime(t), ownUsers)
	config := containerConfig("uid", "list=/dev", "status=CapBnd", "write=/proc/sys/kernel/core_pattern", "owner=/dev/kmsg", "write=/dev/null")
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{Privileged: true}
	got := p.facts(config)
	wantFacts(t, got, map[string]string{
		"uid": "0 0 [0]", "list=/dev": "kmsg", "status=CapBnd": "000001ff", "write=/proc/sys/kernel/core_pattern": "permission denied",
		"owner=/dev/kmsg": "65534:65534", "write=/dev/null": "<nil>",
	})
}

// TestAVolumeThatCannotShowUsers: procfs has no mounts that map users.
func TestAVolumeThatCannotShowUsers(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, ownUsers)
	config := containerConfig("sleep")
	config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: "/proc/irq", ContainerPath: "/volume"})
	if err := r.StartContainer(t.Context(), p.create(config)); err == nil || !strings.Contains(err.Error(), "hostUsers: false") {
		t.Errorf("start: %v", err)
	}
}

// TestUsersAfterARestart takes a running pod over.
func TestUsersAfterARestart(t *testing.T) {
	config := testConfig(t)
	r := open(t, config)
	p := runPod(t, r, ownUsers)
	id := p.start(containerConfig("sleep"))
	p.waitLog(id, "sleeping")
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := open(t, config)
	t.Cleanup(func() { removeAll(t, next) })
	out, _, err := next.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "look", "read=/proc/self/uid_map"}, patience)
	if err != nil || !strings.Contains(string(out), "13107200") {
		t.Errorf("exec: %v\n%s", err, out)
	}
}

func TestUsersAreValidated(t *testing.T) {
	mapping := &runtimeapi.IDMapping{HostId: testUsersFirst, Length: testUsers}
	mode := func(m runtimeapi.NamespaceMode) *runtimeapi.NamespaceOption {
		ids := []*runtimeapi.IDMapping{mapping}
		return &runtimeapi.NamespaceOption{
			Pid: runtimeapi.NamespaceMode_CONTAINER, UsernsOptions: &runtimeapi.UserNamespace{Mode: m, Uids: ids, Gids: ids},
		}
	}
	with := func(change func(*runtimeapi.NamespaceOption)) *runtimeapi.NamespaceOption {
		options := proto.CloneOf(mode(runtimeapi.NamespaceMode_POD))
		change(options)
		return options
	}
	for name, test := range map[string]struct {
		options *runtimeapi.NamespaceOption
		ok      bool
	}{
		"none": {&runtimeapi.NamespaceOption{}, true},
		"pod":  {mode(runtimeapi.NamespaceMode_POD), true},
		"node": {with(func(o *runtimeapi.NamespaceOption) {
			o.UsernsOptions = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}
		}), true},
		"mapped":    {mode(runtimeapi.NamespaceMode_NODE), false},
		"container": {mode(runtimeapi.NamespaceMode_CONTAINER), false},
		"target":    {mode(runtimeapi.NamespaceMode_TARGET), false},
		"two":       {with(func(o *runtimeapi.NamespaceOption) { o.UsernsOptions.Uids = append(o.UsernsOptions.Uids, mapping) }), false},
		"groups":    {with(func(o *runtimeapi.NamespaceOption) { o.UsernsOptions.Gids[0].HostId++ }), false},
		"no root": {with(func(o *runtimeapi.NamespaceOption) {
			o.UsernsOptions.Uids[0].ContainerId, o.UsernsOptions.Gids[0].ContainerId = 1, 1
		}), false},
		"host's root": {with(func(o *runtimeapi.NamespaceOption) {
			o.UsernsOptions.Uids[0].HostId, o.UsernsOptions.Gids[0].HostId = 0, 0
		}), false},
		"too far": {with(func(o *runtimeapi.NamespaceOption) {
			o.UsernsOptions.Uids[0].HostId, o.UsernsOptions.Gids[0].HostId = 1<<32-1, 1<<32-1
		}), false},
		"host network": {with(func(o *runtimeapi.NamespaceOption) { o.Network = runtimeapi.NamespaceMode_NODE }), false},
		"host PID":     {with(func(o *runtimeapi.NamespaceOption) { o.Pid = runtimeapi.NamespaceMode_NODE }), false},
	} {
		if err := validateUsers(test.options); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThisMachineHasUsers(t *testing.T) {
	r := newRuntime(t)
	if !r.hasUsers() {
		t.Error(r.usersErr)
	}
	left, err := filepath.Glob(filepath.Join(r.config.DataDir, "preflight-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// noOtherProc takes away, in this mount namespace, what other programs have mounted of /proc elsewhere: one whole /proc is all that the
// kernel wants to see.
func noOtherProc(t *testing.T) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		where := strings.Fields(line)[4]
		if !strings.Contains(line, " - proc ") || where == "/proc" || strings.HasPrefix(where, "/proc/") {
			continue
		}
		if err := unix.Unmount(where, unix.MNT_DETACH); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
	}
}

// TestUsersWhereProcIsCovered, as Docker covers parts of it: the trial leaves one that is whole, without which it fails, and which is
// removed with all that the runtime leaves.
func TestUsersWhereProcIsCovered(t *testing.T) {
	r := newRuntime(t)
	if !alone(t) {
		return
	}
	noOtherProc(t)
	if err := errors.Join(unix.Mount("/dev/null", "/proc/version", "", unix.MS_BIND, ""), r.usersProblem()); err != nil {
		t.Error(err)
	}
	whole := filepath.Join(r.config.DataDir, trial.Dir, "proc")
	if _, _, mounts, err := leftovers.Remove(r.config.DataDir); err != nil || !slices.Equal(mounts, []string{whole}) {
		t.Errorf("removed %v, %v", mounts, err)
	}
}
