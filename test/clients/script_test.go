package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestKubectl runs the stories in testdata/kubectl with each kubectl that run.sh built.
func TestKubectl(t *testing.T) {
	eachVersion(t, "kubectl", "kubectl")
}

// TestHelm runs the stories in testdata/helm with each Helm.
func TestHelm(t *testing.T) {
	eachVersion(t, "helm", "helm")
}

// TestContainers runs the stories in testdata/containers, on a node with real
// containers, which wants root: with each kubectl, one after the other, since the
// machine has one pod network.
func TestContainers(t *testing.T) {
	eachVersion(t, "kubectl", "containers")
}

// versionsOf are the versions of a tool that run.sh has built: the variable VERSIONS_tool lists them, tool-version are the programs.
func versionsOf(t *testing.T, tool string) []string {
	t.Helper()
	versions := strings.Fields(os.Getenv("VERSIONS_" + tool))
	if len(versions) == 0 {
		t.Fatalf("no versions of %s: run.sh sets them", tool)
	}
	return versions
}

// eachVersion runs the scripts of a folder with each version of a tool.
func eachVersion(t *testing.T, tool, folder string) {
	for _, version := range versionsOf(t, tool) {
		t.Run(version, func(t *testing.T) {
			path := program(tool + "-" + version)
			testscript.Run(t, testscript.Params{
				Dir:                 filepath.Join("testdata", folder),
				Setup:               func(env *testscript.Env) error { return setup(env, tool, path) },
				Cmds:                map[string]func(*testscript.TestScript, bool, []string){"start-dev": startDev, "stop-dev": stopDev},
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
			})
		})
	}
}

// setup puts the tool of one version into the script's PATH, the newest kubectl beside
// others, and the chart and an image into its folder.
func setup(env *testscript.Env, tool, path string) error {
	bin := filepath.Join(env.WorkDir, ".bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	links := map[string]string{"setpoint": program("setpoint"), "kubectl": program("kubectl"), tool: path}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
	env.Values[devKey{}] = new(*process)
	images := filepath.Join(env.WorkDir, "images")
	if err := os.Mkdir(images, 0o755); err != nil {
		return err
	}
	if err := writeBoxImage(filepath.Join(images, "box.tar"), "example.com/box:v1"); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(env.WorkDir, "chart"), os.DirFS(filepath.Join("testdata", "chart")))
}

type devKey struct{}

// startDev runs `setpoint dev` with more flags, on free ports, until it is ready.
func startDev(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: start-dev FLAGS...")
	}
	data := ts.MkAbs(".cluster")
	p, err := start(ts.Getenv("WORK"), "Setpoint is ready", nil, "setpoint",
		append([]string{"dev", "--port", "0", "--data-dir", data}, args...)...)
	ts.Check(err)
	*ts.Value(devKey{}).(**process) = p
	ts.Defer(func() {
		if err := endPods(data, p); err != nil {
			ts.Logf("pods are left: %v", err)
		}
	})
	ts.Setenv("KUBECONFIG", filepath.Join(data, "admin.kubeconfig"))
}

// stopDev ends it; it must end well.
func stopDev(ts *testscript.TestScript, neg bool, args []string) {
	p := *ts.Value(devKey{}).(**process)
	if neg || len(args) != 0 || p == nil {
		ts.Fatalf("usage: stop-dev, after start-dev")
	}
	if err := p.stop(); err != nil {
		ts.Fatalf("stop-dev: %v\n%s", err, p.output)
	}
}
