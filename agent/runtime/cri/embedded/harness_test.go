package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/demoimage"
)

const demoImage = "setpoint.local/demo:v1"

// patience bounds every wait; a healthy machine needs milliseconds.
const patience = 10 * time.Second

func testConfig(t testing.TB) Config {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces, mounts and cgroups")
	}
	config := Config{
		DataDir: t.TempDir(), NodeName: "test-" + newID(sandboxIDBytes)[:8], Bridge: "sptest0", PodCIDR: netip.MustParsePrefix("10.199.7.0/24"),
		ClusterCIDR: netip.MustParsePrefix("10.199.0.0/16"),
		Logger:      slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if libraries() != nil {
		config.ShimExecutable = buildShim(t)
	}
	t.Cleanup(func() { machinetest.UnmountBelow(config.DataDir) })
	t.Cleanup(func() { removeLeftovers(t, config) })
	return config
}

// buildShim makes the small helper: one that carries the race detector takes seconds to start a pod.
func buildShim(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "setpoint-shim")
	build := exec.Command("go", "build", "-o", path, "./shim/setpoint-shim")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// removeLeftovers ends the pods of a test that failed between two runtimes.
func removeLeftovers(t testing.TB, config Config) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Join(config.DataDir, "sandboxes")); err != nil || len(left) == 0 {
		return
	}
	r, err := New(config)
	if err != nil {
		t.Errorf("pods are left: %v", err)
		return
	}
	removeAll(t, r)
}

func open(t testing.TB, config Config) *Runtime {
	t.Helper()
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

func newRuntime(t testing.TB) *Runtime {
	t.Helper()
	r := open(t, testConfig(t))
	t.Cleanup(func() { removeAll(t, r) })
	return r
}

// removeAll must leave nothing behind; it fails the test otherwise.
func removeAll(t testing.TB, r *Runtime) {
	t.Helper()
	ctx := context.Background()
	list, _ := r.ListPodSandbox(ctx, nil)
	for _, item := range list {
		if err := r.RemovePodSandbox(ctx, item.Id); err != nil {
			t.Errorf("remove sandbox: %v", err)
		}
	}
	if err := r.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := r.Uninstall(); err != nil {
		t.Errorf("uninstall: %v", err)
	}
	left, _ := filepath.Glob("/sys/fs/cgroup/*" + r.cgroupRoot())
	if len(left) > 0 {
		t.Errorf("cgroups left: %v", left)
	}
}

func podConfig(t testing.TB, name string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Uid: name + "-uid", Namespace: "default"},
		Hostname: name, LogDirectory: filepath.Join(t.TempDir(), "logs"), Labels: map[string]string{"app": name},
		Annotations: map[string]string{"note": "kept"}, DnsConfig: &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}},
		// As the agent asks for; the CRI's own default is one PID namespace for the whole pod.
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER},
		}},
	}
}

type pod struct {
	t       testing.TB
	runtime *Runtime
	config  *runtimeapi.PodSandboxConfig
	id      string
}

func runPod(t testing.TB, r *Runtime, change func(*runtimeapi.PodSandboxConfig)) *pod {
	t.Helper()
	config := podConfig(t, strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))
	if change != nil {
		change(config)
	}
	id, err := r.RunPodSandbox(t.Context(), config, "")
	if err != nil {
		t.Fatal(err)
	}
	return &pod{t, r, config, id}
}

func containerConfig(args ...string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: demoImage},
		Command: []string{"/setpoint", "workload"}, Args: args, LogPath: "main/0.log", Labels: map[string]string{"c": "main"},
		Linux: &runtimeapi.LinuxContainerConfig{}, Mounts: libraries(),
		// A program with the race detector otherwise sleeps for a second before it exits.
		Envs: []*runtimeapi.KeyValue{{Key: "GORACE", Value: []byte("atexit_sleep_ms=0")}},
	}
}

// libraries lets a test executable that is not static (the race detector's) run in an image that holds nothing else.
func libraries() []*runtimeapi.Mount {
	if static, err := demoimage.Static("/proc/self/exe"); err != nil || static {
		return nil
	}
	var mounts []*runtimeapi.Mount
	for _, dir := range []string{"/lib", "/lib64", "/usr/lib"} {
		if _, err := os.Stat(dir); err == nil {
			mounts = append(mounts, &runtimeapi.Mount{HostPath: dir, ContainerPath: dir, Readonly: true})
		}
	}
	return mounts
}

func (p *pod) create(config *runtimeapi.ContainerConfig) string {
	p.t.Helper()
	id, err := p.runtime.CreateContainer(p.t.Context(), p.id, config, p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *pod) start(config *runtimeapi.ContainerConfig) string {
	p.t.Helper()
	id := p.create(config)
	if err := p.runtime.StartContainer(p.t.Context(), id); err != nil {
		p.t.Fatalf("start: %v", err)
	}
	return id
}

func (p *pod) status(id string) *runtimeapi.ContainerStatus {
	p.t.Helper()
	response, err := p.runtime.ContainerStatus(p.t.Context(), id, true)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.Status
}

// exit waits for the end of a container.
func (p *pod) exit(id string) *runtimeapi.ContainerStatus {
	p.t.Helper()
	c, err := p.runtime.container(id)
	if err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-c.done:
	case <-time.After(patience):
		p.t.Fatalf("container still runs; log:\n%s", p.log(id))
	}
	return p.status(id)
}

// log returns the texts of the container's log, one per line.
func (p *pod) log(id string) string {
	p.t.Helper()
	data, err := os.ReadFile(p.status(id).LogPath)
	if err != nil {
		p.t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			out.WriteString(fields[3])
		}
	}
	return out.String()
}

// waitLog waits until the log contains text.
func (p *pod) waitLog(id, text string) {
	p.t.Helper()
	eventually(p.t, func() error {
		if got := p.log(id); !strings.Contains(got, text) {
			return fmt.Errorf("log has no %q:\n%s", text, got)
		}
		return nil
	})
}

// eventually polls what only the outside world can tell.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// facts runs the workload's "look" and returns its answers by question.
func (p *pod) facts(config *runtimeapi.ContainerConfig) map[string]string {
	p.t.Helper()
	config.Args = append([]string{"look"}, config.Args...)
	id := p.start(config)
	if full := p.exit(id); full.ExitCode != 0 {
		p.t.Fatalf("look: exit %d, log:\n%s", full.ExitCode, p.log(id))
	}
	answers := map[string]string{}
	for line := range strings.Lines(p.log(id)) {
		question, answer, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		answers[question] = answer
	}
	return answers
}
