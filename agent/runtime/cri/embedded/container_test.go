package embedded

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

func TestContainerRunsLogsAndExits(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	id := p.start(containerConfig("say", "3", "hello", "world"))
	full := p.exit(id)
	if full.ExitCode != 3 || full.Reason != "Error" || full.State != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("exit %d %s %s", full.ExitCode, full.Reason, full.State)
	}
	if full.StartedAt < full.CreatedAt || full.FinishedAt < full.StartedAt {
		t.Errorf("times out of order: %d %d %d", full.CreatedAt, full.StartedAt, full.FinishedAt)
	}
	if got := p.log(id); got != "hello\nworld\n" {
		t.Errorf("log %q", got)
	}
}

// Characters that mean something to overlayfs, in the path of a data directory.
func TestADataDirectoryMayBeCalledAnything(t *testing.T) {
	config := testConfig(t)
	config.DataDir = filepath.Join(config.DataDir, `a,b:c\d e`)
	r := open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	p := runPod(t, r, nil)
	id := p.start(containerConfig("say", "0", "hello"))
	if full := p.exit(id); full.ExitCode != 0 {
		t.Errorf("exit %d %s: %s", full.ExitCode, full.Reason, full.Message)
	}
}

func TestContainerSeesWhatItWasPromised(t *testing.T) {
	p := runPod(t, newRuntime(t), func(config *runtimeapi.PodSandboxConfig) { config.Hostname = "web-0" })
	config := containerConfig("uid", "hostname", "pid", "cwd", "env=COLOR", "env=HOME", "env=HOSTNAME", "read=/etc/resolv.conf",
		"status=CapBnd", "status=CapEff", "status=NoNewPrivs", "status=Seccomp", "write=/proc/sys/kernel/hostname",
		"read=/proc/interrupts", "write=/dev/null", "write=/dev/shm/x", "mount", "list=/proc/self/fd")
	config.WorkingDir = "/made/here"
	config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: "COLOR", Value: []byte("red")})
	got := p.facts(config)
	delete(got, "list=/proc/self/fd") // the runtime opens some of its own
	want := map[string]string{
		"uid": "0 0 [0]", "hostname": "web-0", "pid": "1", "cwd": "/made/here", "env=COLOR": "red", "env=HOME": "/",
		"env=HOSTNAME": "web-0", "read=/etc/resolv.conf": "nameserver 10.96.0.10",
		"status=CapBnd": "00000000a80425fb", "status=CapEff": "00000000a80425fb", "status=NoNewPrivs": "0", "status=Seccomp": "0",
		"write=/proc/sys/kernel/hostname": "open /proc/sys/kernel/hostname: read-only file system",
		"read=/proc/interrupts":           "", "write=/dev/null": "<nil>", "write=/dev/shm/x": "<nil>", "mount": "operation not permitted",
	}
	if confinesAll(t, p.runtime) {
		want["mount"] = "permission denied"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestThePodChoosesTheStopSignal(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	config := containerConfig("sleep") // which ends by itself at SIGTERM, with 7
	config.StopSignal = runtimeapi.Signal_SIGNAL_SIGQUIT
	id := p.start(config)
	p.waitLog(id, "sleeping")
	if err := p.runtime.StopContainer(t.Context(), id, int64(patience/time.Second)); err != nil {
		t.Fatal(err)
	}
	if full := p.exit(id); full.ExitCode != 2 { // Go's answer to SIGQUIT
		t.Errorf("exit %d", full.ExitCode)
	}
}

func TestAStopSignalFromThePodToItsNumber(t *testing.T) {
	config := containerConfig()
	config.StopSignal = runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3
	if got := stopSignal(stopSignalOf(config, images.Image{})); got != 37 {
		t.Errorf("%d", got)
	}
}

func TestASeccompProfileHasAnAbsolutePath(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	config := containerConfig("say", "0")
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{
		Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "strict.json"}}
	if _, err := p.runtime.CreateContainer(t.Context(), p.id, config, p.config); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a path relative to the working directory: %v", err)
	}
}

func TestContainerSecurity(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	config := containerConfig("uid", "status=CapBnd", "status=CapEff", "status=NoNewPrivs", "status=Seccomp", "write=/file",
		"write=/tmp/file", "unshare")
	volume := t.TempDir()
	if err := os.Chmod(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: volume, ContainerPath: "/tmp"})
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{
		RunAsUser: &runtimeapi.Int64Value{Value: 1000}, RunAsGroup: &runtimeapi.Int64Value{Value: 2000},
		SupplementalGroups: []int64{3000}, NoNewPrivs: true, ReadonlyRootfs: true,
		Seccomp:      &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
		Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"ALL"}, AddCapabilities: []string{"NET_BIND_SERVICE"}},
	}
	want := map[string]string{
		"uid": "1000 2000 [2000 3000]", "status=CapBnd": "0000000000000400", "status=CapEff": "0000000000000000",
		"status=NoNewPrivs": "1", "status=Seccomp": "2", "write=/file": "open /file: read-only file system",
		"write=/tmp/file": "<nil>", "unshare": "true operation not permitted",
	}
	if diff := cmp.Diff(want, p.facts(config)); diff != "" {
		t.Error(diff)
	}
}

// TestTheStatusNamesTheUser that the first process got, also after its end.
func TestTheStatusNamesTheUser(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	config := containerConfig("say", "0", "hello")
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{
		RunAsUser: &runtimeapi.Int64Value{Value: 1000}, RunAsGroup: &runtimeapi.Int64Value{Value: 2000}, SupplementalGroups: []int64{3000},
	}
	got := p.exit(p.start(config)).User.GetLinux()
	if got.GetUid() != 1000 || got.GetGid() != 2000 || !slices.Equal(got.GetSupplementalGroups(), []int64{2000, 3000}) {
		t.Errorf("%v", got)
	}
}

func TestPrivilegedContainer(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	config := containerConfig("mount", "status=CapEff", "write=/dev/zero")
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{Privileged: true}
	config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: t.TempDir(), ContainerPath: "/tmp"})
	got := p.facts(config)
	if got["mount"] != "<nil>" || got["write=/dev/zero"] != "<nil>" || got["status=CapEff"] == "00000000a80425fb" {
		t.Errorf("facts: %v", got)
	}
}

func TestMounts(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	volume, file := t.TempDir(), filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(volume, "made")
	config := containerConfig("write=/data/x", "write=/ro/x", "read=/etc/key", "list=/new/deep", "read=/etc/hosts")
	config.Mounts = append(config.Mounts, []*runtimeapi.Mount{
		{HostPath: missing, ContainerPath: "/new/deep"}, // children before parents must not matter
		{HostPath: volume, ContainerPath: "/data"},
		{HostPath: volume, ContainerPath: "/ro", Readonly: true},
		{HostPath: file, ContainerPath: "/etc/key"},
		{HostPath: file, ContainerPath: "/etc/hosts"},
	}...)
	want := map[string]string{"write=/data/x": "<nil>", "write=/ro/x": "open /ro/x: read-only file system",
		"read=/etc/key": "secret", "list=/new/deep": "", "read=/etc/hosts": "secret"}
	if diff := cmp.Diff(want, p.facts(config)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(volume, "x")); err != nil {
		t.Errorf("written file is not on the host: %v", err)
	}
}

func TestDevicesBelowAVolumeAreDead(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	volume := t.TempDir()
	below := filepath.Join(volume, "below")
	if err := errors.Join(os.Mkdir(below, 0o755), unix.Mount("tmpfs", below, "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(below, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mknod(filepath.Join(below, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	config := containerConfig("write=/data/below/null")
	config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: volume, ContainerPath: "/data"})
	if got := p.facts(config)["write=/data/below/null"]; !strings.HasSuffix(got, "permission denied") {
		t.Errorf("a device in a mount below a volume: %s", got)
	}
}

func TestStartErrors(t *testing.T) {
	tests := map[string]struct {
		change func(*runtimeapi.ContainerConfig)
		text   string
		code   int32
	}{
		"command not in PATH": {func(c *runtimeapi.ContainerConfig) { c.Command = []string{"nosuch"} }, `exec: "nosuch": executable file not found in $PATH`, 127},
		"command not there":   {func(c *runtimeapi.ContainerConfig) { c.Command = []string{"/no/such"} }, "no such file or directory", 127},
		"directory":           {func(c *runtimeapi.ContainerConfig) { c.Command = []string{"/etc"} }, "permission denied", 126},
		"user unknown": {func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{RunAsUsername: "nobody"}
		}, "unable to find user nobody", 128},
		"device missing": {func(c *runtimeapi.ContainerConfig) {
			c.Devices = []*runtimeapi.Device{{HostPath: "/dev/nosuch", ContainerPath: "/dev/nosuch"}}
		}, "device /dev/nosuch", 128},
	}
	r := newRuntime(t)
	p := runPod(t, r, nil)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := containerConfig("say", "0")
			test.change(config)
			id := p.create(config)
			err := r.StartContainer(t.Context(), id)
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("error %v, want %q", err, test.text)
			}
			if full := p.status(id); full.ExitCode != test.code || full.Reason != "StartError" || !strings.Contains(full.Message, test.text) {
				t.Errorf("exit %d, reason %s, message %s", full.ExitCode, full.Reason, full.Message)
			}
		})
	}
}

func TestStopGracefullyOrNot(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	polite := p.start(containerConfig("sleep"))
	p.waitLog(polite, "sleeping")
	if err := r.StopContainer(t.Context(), polite, 10); err != nil {
		t.Fatal(err)
	}
	if full := p.status(polite); full.ExitCode != 7 {
		t.Errorf("polite: exit %d", full.ExitCode)
	}
	stubborn := p.start(containerConfig("stubborn"))
	p.waitLog(stubborn, "stubborn")
	started := time.Now()
	if err := r.StopContainer(t.Context(), stubborn, 1); err != nil {
		t.Fatal(err)
	}
	if full := p.status(stubborn); full.ExitCode != 137 || time.Since(started) < time.Second {
		t.Errorf("stubborn: exit %d after %s", full.ExitCode, time.Since(started))
	}
}

func TestOOMKilled(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	config := containerConfig("eat")
	config.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 64 << 20}
	if full := p.exit(p.start(config)); full.Reason != "OOMKilled" || full.ExitCode != 137 {
		t.Errorf("exit %d, reason %s", full.ExitCode, full.Reason)
	}
}

func TestHostNetwork(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, func(config *runtimeapi.PodSandboxConfig) {
		config.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER}}}
	})
	if got := p.facts(containerConfig("list=/proc/self/net/dev_snmp6", "pid")); got["pid"] != "1" {
		t.Errorf("facts %v", got)
	}
	full, err := r.PodSandboxStatus(t.Context(), p.id, false)
	if err != nil || full.Status.Network.Ip != "" {
		t.Errorf("status %v %v", full, err)
	}
}

func TestListsFiltersAndNotFound(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	id := p.create(containerConfig("say", "0"))
	ctx := t.Context()
	for name, test := range map[string]struct {
		filter *runtimeapi.ContainerFilter
		want   int
	}{
		"all":         {nil, 1},
		"label":       {&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"c": "main"}}, 1},
		"other label": {&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"c": "other"}}, 0},
		"state":       {&runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}, 0},
		"sandbox":     {&runtimeapi.ContainerFilter{PodSandboxId: p.id, Id: id}, 1},
	} {
		list, err := r.ListContainers(ctx, test.filter)
		if err != nil || len(list) != test.want {
			t.Errorf("%s: %d containers, %v", name, len(list), err)
		}
	}
	sandboxes, err := r.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: p.config.Labels})
	if err != nil || len(sandboxes) != 1 || sandboxes[0].Annotations["note"] != "kept" {
		t.Errorf("sandboxes %v %v", sandboxes, err)
	}
	_, err = r.ContainerStatus(ctx, "nosuch", false)
	if status.Code(err) != codes.NotFound {
		t.Errorf("status of unknown container: %v", err)
	}
	if err := r.RemoveContainer(ctx, "nosuch"); err != nil {
		t.Errorf("remove of unknown container: %v", err)
	}
	if err := r.RemoveContainer(ctx, id); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(r.containersDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSandboxValidation(t *testing.T) {
	r := newRuntime(t)
	if _, err := r.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{}, ""); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no metadata: %v", err)
	}
	if _, err := r.RunPodSandbox(t.Context(), podConfig(t, "x"), "gvisor"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("unknown handler: %v", err)
	}
	config := podConfig(t, "x")
	config.Linux = &runtimeapi.LinuxPodSandboxConfig{Sysctls: map[string]string{"net.ipv4.nosuch": "1"}}
	if _, err := r.RunPodSandbox(t.Context(), config, ""); err == nil || !strings.Contains(err.Error(), "sysctl net/ipv4/nosuch") {
		t.Errorf("bad sysctl: %v", err)
	}
	if left, _ := os.ReadDir(r.sandboxesDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSysctlsOfTheHostAreRefused(t *testing.T) {
	host := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Ipc: runtimeapi.NamespaceMode_NODE}
	tests := map[string]struct {
		options *runtimeapi.NamespaceOption
		file    string // empty: refused
	}{
		"net.ipv4.tcp_syncookies":         {nil, "net/ipv4/tcp_syncookies"},
		"net/ipv4/ip_forward":             {nil, "net/ipv4/ip_forward"},
		"net.ipv4.conf.eth0/1.forwarding": {nil, "net/ipv4/conf/eth0.1/forwarding"},
		"kernel.shmmax":                   {nil, "kernel/shmmax"},
		"kernel.domainname":               {nil, "kernel/domainname"},
		"fs.mqueue.msg_max":               {nil, "fs/mqueue/msg_max"},
		"net.ipv4.tcp_fin_timeout":        {host, ""},
		"kernel.shm_rmid_forced":          {host, ""},
		"kernel.core_pattern":             {nil, ""},
		"kernel.hostname":                 {nil, ""},
		"vm.swappiness":                   {nil, ""},
		"user.max_user_namespaces":        {nil, ""},
		"net.//.//.kernel.core_pattern":   {nil, ""},
		"net/../kernel/core_pattern":      {nil, ""},
		"net.ipv4..":                      {nil, ""},
	}
	for name, test := range tests {
		config := &runtimeapi.PodSandboxConfig{Linux: &runtimeapi.LinuxPodSandboxConfig{
			Sysctls:         map[string]string{name: "1"},
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: test.options},
		}}
		files, err := sysctlFiles(config)
		if _, ok := files[test.file]; ok != (test.file != "") || (err != nil) != (test.file == "") {
			t.Errorf("%s: %v %v, want %q", name, files, err, test.file)
		}
	}
}

func TestDebugContainerSharesItsTargetsProcesses(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	target := p.start(named("target", "sleep"))
	config := containerConfig("pid", "read=/proc/1/cmdline")
	options := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: target}
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: options}
	got := p.facts(config)
	if got["pid"] == "1" || !strings.Contains(got["read=/proc/1/cmdline"], "sleep") {
		t.Errorf("facts %v", got)
	}
	if got := p.facts(containerConfig("pid")); got["pid"] != "1" {
		t.Errorf("the next container's own namespace: %v", got)
	}
	options.TargetId = "nosuch"
	if err := r.StartContainer(t.Context(), p.create(config)); err == nil || !strings.Contains(err.Error(), "target container") {
		t.Errorf("unknown target: %v", err)
	}
}

func TestFullPodCIDRLeavesNothing(t *testing.T) {
	config := testConfig(t)
	config.PodCIDR = netip.MustParsePrefix("10.199.7.0/30") // one pod
	r := open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	first := runPod(t, r, nil)
	if _, err := r.RunPodSandbox(t.Context(), podConfig(t, "second"), ""); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("second pod: %v", err)
	}
	if left, _ := os.ReadDir(r.sandboxesDir()); len(left) != 1 {
		t.Errorf("sandboxes: %v", left)
	}
	if err := r.RemovePodSandbox(t.Context(), first.id); err != nil {
		t.Fatal(err)
	}
	runPod(t, r, nil)
}

func TestPodWithoutAddressesWaits(t *testing.T) {
	config := testConfig(t)
	config.PodCIDR = netip.Prefix{}
	r := open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	if _, err := r.RunPodSandbox(t.Context(), podConfig(t, "early"), ""); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("pod before the pod CIDR: %v", err)
	}
	response, err := r.Status(t.Context(), false)
	if err != nil || response.Status.Conditions[1].Status {
		t.Errorf("status %v %v", response, err)
	}
	update := &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: "10.199.7.0/24"}}
	if err := r.UpdateRuntimeConfig(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	if runPod(t, r, nil).ip() != "10.199.7.2" {
		t.Error("no address")
	}
}

func TestMaskedPaths(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	config := containerConfig("read=/proc/meminfo", "read=/proc/uptime")
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{MaskedPaths: []string{"/proc/meminfo"}}
	if got := p.facts(config); got["read=/proc/meminfo"] != "" || got["read=/proc/uptime"] == "" {
		t.Errorf("facts %v", got)
	}
}
