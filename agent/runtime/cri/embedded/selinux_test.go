package embedded

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/selinux"
)

// labelRead is where a process of the container reads its label.
const labelRead = "read=/proc/self/attr/current"

func labelled(o *runtimeapi.SELinuxOption, args ...string) *runtimeapi.ContainerConfig {
	config := containerConfig(args...)
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{SelinuxOptions: o}
	return config
}

// TestWithoutLabels: a kernel without SELinux ignores what it has no meaning for; a kernel whose policy is not for containers must not.
func TestWithoutLabels(t *testing.T) {
	r := newRuntime(t)
	if r.selinux.Enabled() {
		t.Skip("this kernel labels containers")
	}
	want := codes.OK
	if machine.HasSELinux() {
		want = codes.Unimplemented
	}
	p := runPod(t, r, nil)
	_, err := r.CreateContainer(t.Context(), p.id, labelled(&runtimeapi.SELinuxOption{Type: "t", Level: "s0"}), p.config)
	if status.Code(err) != want {
		t.Errorf("a container: %v", err)
	}
	config := podConfig(t, "labelled")
	config.Linux.SecurityContext.SelinuxOptions = &runtimeapi.SELinuxOption{Level: "s0:c1,c2"}
	if _, err := r.RunPodSandbox(t.Context(), config, ""); status.Code(err) != want {
		t.Errorf("a pod: %v", err)
	}
	volume := containerConfig("say", "0")
	volume.Mounts = append(volume.Mounts, &runtimeapi.Mount{HostPath: "/etc", ContainerPath: "/v", SelinuxRelabel: true})
	if full := p.exit(p.start(volume)); full.ExitCode != 0 {
		t.Errorf("nothing is relabelled: %v", full)
	}
	if can := r.Can(); can.SELinux || can.NoSELinux == machine.HasSELinux() || p.labels() != (selinux.Labels{}) {
		t.Errorf("%+v %v", can, p.labels())
	}
}

func (p *pod) labels() selinux.Labels {
	p.t.Helper()
	s, err := p.runtime.sandbox(p.id)
	if err != nil {
		p.t.Fatal(err)
	}
	return s.labels()
}

// label runs a container and returns the label of its process.
func (p *pod) label(config *runtimeapi.ContainerConfig) string {
	p.t.Helper()
	return strings.TrimRight(p.facts(config)[labelRead], "\x00")
}

// TestSELinuxConfines real containers. `make vm LSM=selinux` fails if it and the next one are skipped there.
func TestSELinuxConfines(t *testing.T) {
	r := newRuntime(t)
	needLabels(t, r)
	t.Run("labels", func(t *testing.T) { labelsOfProcesses(t, r) })
	t.Run("commands", func(t *testing.T) { labelsOfCommands(t, r) })
	t.Run("other namespaces", func(t *testing.T) { labelsInOtherNamespaces(t, r) })
	t.Run("its own files", func(t *testing.T) { usesItsOwnFiles(t, r) })
	t.Run("files of others", func(t *testing.T) { usesNoFilesOfOthers(t, r) })
	t.Run("invalid", func(t *testing.T) { invalidLabels(t, r) })
}

func needLabels(t *testing.T, r *Runtime) {
	t.Helper()
	if !r.selinux.Enabled() {
		t.Skip("no policy for containers is loaded")
	}
}

func labelsOfProcesses(t *testing.T, r *Runtime) {
	p := runPod(t, r, nil)
	level := p.labels().Process[strings.Index(p.labels().Process, "s0:"):]
	privileged, inHost := labelled(nil, labelRead), labelled(nil, labelRead)
	privileged.Linux.SecurityContext.Privileged = true
	inHost.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE}
	noRights := labelled(nil, labelRead)
	noRights.Linux.SecurityContext.NoNewPrivs = true
	for name, test := range map[string]struct {
		config *runtimeapi.ContainerConfig
		want   string
	}{
		"by default":           {containerConfig(labelRead), "system_u:system_r:container_t:" + level},
		"no new privileges":    {noRights, "system_u:system_r:container_t:" + level},
		"another level":        {labelled(&runtimeapi.SELinuxOption{Level: "s0:c1"}, labelRead), "system_u:system_r:container_t:s0:c1"},
		"another type":         {labelled(&runtimeapi.SELinuxOption{Type: "spc_t"}, labelRead), "system_u:system_r:spc_t:" + level},
		"privileged":           {privileged, "system_u:system_r:spc_t:" + level},
		"the host's processes": {inHost, "system_u:system_r:spc_t:" + level},
	} {
		if got := p.label(test.config); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if other := runPod(t, r, nil); other.labels() == p.labels() {
		t.Errorf("two pods have the label %v", p.labels())
	}
}

func labelsOfCommands(t *testing.T, r *Runtime) {
	p := runPod(t, r, nil)
	id := p.start(containerConfig("sleep"))
	out, _, err := r.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "look", labelRead}, patience)
	if err != nil || !strings.Contains(string(out), p.labels().Process) {
		t.Errorf("%s %v", out, err)
	}
}

// labelsInOtherNamespaces: where another process than the one that boots becomes the container.
func labelsInOtherNamespaces(t *testing.T, r *Runtime) {
	shared := sharedPod(t, r)
	if got := shared.label(inSharedPod(containerConfig(labelRead))); got != shared.labels().Process {
		t.Errorf("in a shared PID namespace: %q", got)
	}
	if !r.hasUsers() {
		return
	}
	p := runPod(t, r, ownUsers)
	if got := p.label(containerConfig(labelRead)); got != p.labels().Process {
		t.Errorf("in a user namespace: %q", got)
	}
	id := p.start(containerConfig("sleep"))
	out, _, err := r.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "look", labelRead}, patience)
	if err != nil || !strings.Contains(string(out), p.labels().Process) {
		t.Errorf("a command in a user namespace: %s %v", out, err)
	}
}

// usesItsOwnFiles: the policy lets a container have nothing but what is labelled for it.
func usesItsOwnFiles(t *testing.T, r *Runtime) {
	own := func(change func(*runtimeapi.PodSandboxConfig)) {
		p := runPod(t, r, change)
		want := map[string]string{"write=/file": "<nil>", "write=/dev/shm/file": "<nil>", "write=/dev/null": "<nil>", "list=/dev/mqueue": "",
			"list=/sys/firmware": "", "read=/etc/hostname": p.config.Hostname} // a masked folder is an empty one of the container's
		if diff := cmp.Diff(want, p.facts(containerConfig(slices.Collect(maps.Keys(want))...))); diff != "" {
			t.Error(diff)
		}
	}
	own(nil)
	if r.hasUsers() {
		own(ownUsers)
	}
}

// usesNoFilesOfOthers: a type keeps a container from the host's files, a level from those of other pods.
func usesNoFilesOfOthers(t *testing.T, r *Runtime) {
	const read, denied = "read=/v/file", "permission denied"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	reads := func(p *pod, mount *runtimeapi.Mount, privileged bool) string {
		config := labelled(nil, read)
		mount.ContainerPath, config.Linux.SecurityContext.Privileged = "/v", privileged
		config.Mounts = append(config.Mounts, mount)
		return p.facts(config)[read]
	}
	one, two := runPod(t, r, nil), runPod(t, r, nil)
	for _, step := range []struct {
		name       string
		pod        *pod
		relabel    bool
		privileged bool
		want       string
	}{
		{"a file of the host", one, false, false, denied},
		{"a file of the host, privileged", one, false, true, "content"},
		{"relabelled", one, true, false, "content"},
		{"that of another pod", two, false, false, denied},
		{"that of another pod, privileged", two, false, true, "content"},
		{"relabelled for another pod", two, true, false, "content"},
		{"which the first then lacks", one, false, false, denied},
	} {
		if got := reads(step.pod, &runtimeapi.Mount{HostPath: dir, SelinuxRelabel: step.relabel}, step.privileged); !strings.Contains(got, step.want) {
			t.Errorf("%s: %q", step.name, got)
		}
	}
	id := one.start(containerConfig("sleep"))
	upper := filepath.Join(r.containersDir(), id, "upper")
	if out, _, err := r.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "look", "write=/file"}, patience); err != nil {
		t.Fatal(string(out), err)
	}
	if got := reads(two, &runtimeapi.Mount{HostPath: upper}, false); !strings.Contains(got, denied) {
		t.Errorf("what a container of another pod has written: %q", got)
	}
}

func invalidLabels(t *testing.T, r *Runtime) {
	p := runPod(t, r, nil)
	wish := &runtimeapi.SELinuxOption{Type: "no_such_t"}
	_, ofContainer := r.CreateContainer(t.Context(), p.id, labelled(wish, "say", "0"), p.config)
	config := podConfig(t, "invalid")
	config.Linux.SecurityContext.SelinuxOptions = wish
	_, ofPod := r.RunPodSandbox(t.Context(), config, "")
	for _, err := range []error{ofContainer, ofPod} {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "system_u:system_r:no_such_t:s0:c") {
			t.Error(err)
		}
	}
}

// TestSELinuxAfterARestart: a pod keeps its level.
func TestSELinuxAfterARestart(t *testing.T) {
	config := testConfig(t)
	first := open(t, config)
	needLabels(t, first)
	p := runPod(t, first, nil)
	before := p.labels()
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.runtime = open(t, config)
	t.Cleanup(func() { removeAll(t, p.runtime) })
	if got := p.label(containerConfig(labelRead)); got != before.Process {
		t.Errorf("%q, before %q", got, before.Process)
	}
}
