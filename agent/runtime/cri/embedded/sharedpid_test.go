package embedded

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sharedPod has one PID namespace for all its containers.
func sharedPod(t *testing.T, r *Runtime) *pod {
	t.Helper()
	return runPod(t, r, func(config *runtimeapi.PodSandboxConfig) {
		config.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_POD}}}
	})
}

func inSharedPod(config *runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig {
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_POD},
		RunAsUser:        &runtimeapi.Int64Value{Value: 1000},
		Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	return config
}

func TestSharedProcessNamespace(t *testing.T) {
	p := sharedPod(t, newRuntime(t))
	got := p.facts(inSharedPod(containerConfig("pid", "uid", "read=/proc/1/cmdline", "list=/proc/1/root", "write=/proc/sys/kernel/domainname")))
	if got["pid"] == "1" || got["uid"] != "1000 0 [0]" || !strings.HasPrefix(got["read=/proc/1/cmdline"], "setpoint-pause") ||
		!strings.HasSuffix(got["list=/proc/1/root"], "permission denied") || got["write=/proc/sys/kernel/domainname"] == "<nil>" {
		t.Errorf("facts %v", got)
	}
}

func TestContainersThatShareProcessesLiveAndEndAsOthers(t *testing.T) {
	r := newRuntime(t)
	p := sharedPod(t, r)
	for range 20 { // some end before the shim is told their number
		if full := p.exit(p.start(inSharedPod(containerConfig("say", "3", "hello")))); full.ExitCode != 3 {
			t.Fatalf("exit %d", full.ExitCode)
		}
	}
	stopped := p.start(inSharedPod(containerConfig("sleep")))
	p.waitLog(stopped, "sleeping")
	if err := r.StopContainer(t.Context(), stopped, 10); err != nil {
		t.Fatal(err)
	}
	if full := p.status(stopped); full.ExitCode != 7 {
		t.Errorf("stopped: exit %d", full.ExitCode)
	}
	terminal := inSharedPod(containerConfig("look", "tty"))
	terminal.Tty = true
	if id := p.start(terminal); p.exit(id).ExitCode != 0 || !strings.Contains(p.log(id), "tty: 0x0") {
		t.Errorf("terminal: %s", p.log(id))
	}
	missing := inSharedPod(containerConfig())
	missing.Command = []string{"nosuch"}
	id := p.create(missing)
	if err := r.StartContainer(t.Context(), id); err == nil || p.status(id).ExitCode != 127 {
		t.Errorf("no command: %v, exit %d", err, p.status(id).ExitCode)
	}
}

func TestEndOfPauseEndsThePod(t *testing.T) {
	r := newRuntime(t)
	p := sharedPod(t, r)
	id := p.start(inSharedPod(containerConfig("stubborn")))
	p.waitLog(id, "stubborn")
	s, err := r.sandbox(p.id)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(childOf(t, s.record.ShimPID, "setpoint-pause"), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if full := p.exit(id); full.ExitCode != 137 {
		t.Errorf("exit %d", full.ExitCode)
	}
	p.isOver() // at once: else somebody starts the container again in there
}

// childOf finds the child of that name.
func childOf(t *testing.T, parent int, name string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		var pid, ppid int
		command, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if _, err := fmt.Sscanf(rest, "%c %d", new(rune), &ppid); err != nil || ppid != parent || !strings.HasPrefix(string(command), name) {
			continue
		}
		if _, err := fmt.Sscan(entry.Name(), &pid); err == nil {
			return pid
		}
	}
	t.Fatalf("process %d has no child %s", parent, name)
	return 0
}

// TestProcessesAreSharedUnlessAsked: the zero value of the CRI's NamespaceMode is POD, which callers that say nothing mean.
func TestProcessesAreSharedUnlessAsked(t *testing.T) {
	p := runPod(t, newRuntime(t), func(config *runtimeapi.PodSandboxConfig) { config.Linux = nil })
	if got := p.facts(containerConfig("pid", "read=/proc/1/cmdline")); got["pid"] == "1" || !strings.HasPrefix(got["read=/proc/1/cmdline"], "setpoint-pause") {
		t.Errorf("facts %v", got)
	}
}
