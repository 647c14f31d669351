package beside_test

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	setpointtest "github.com/setpoint-io/setpoint/setpointtest/beside"
)

var apiOnly = setpointtest.Config{Loops: setpointtest.APIOnly}

// child runs some tests of this binary in another process, with a folder of its own, so a server of its own.
func child(t *testing.T, tests string, environment ...string) (output string, err error) {
	t.Helper()
	folder, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", tests)
	cmd.Env = append(os.Environ(), append(environment, "XDG_RUNTIME_DIR="+folder, besideFolder+"="+folder, "BESIDE_TEST_CHILD=1")...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func isChild() bool { return os.Getenv("BESIDE_TEST_CHILD") != "" }

// TestChildKilledServer fails in a child: its server is killed while it waits.
func TestChildKilledServer(t *testing.T) {
	if !isChild() {
		return
	}
	c := setpointtest.Start(t, apiOnly)
	killServer(t)
	c.Eventually("configmap/a")
}

// TestChildMisuse fails in a child, in each subtest.
func TestChildMisuse(t *testing.T) {
	if !isChild() {
		return
	}
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { setpointtest.Start(t, apiOnly) }) })
	t.Run("twice", func(t *testing.T) { setpointtest.Start(t, apiOnly); setpointtest.Start(t, apiOnly) })
	t.Run("loop", func(t *testing.T) {
		setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.Only("deployments")})
	})
	t.Run("node", func(t *testing.T) { setpointtest.Start(t, apiOnly).KillNode("sim-1") })
	t.Run("back", func(t *testing.T) { setpointtest.Start(t, apiOnly).Advance(-time.Second) })
	t.Run("waits", func(t *testing.T) { setpointtest.Start(t, apiOnly).Within(time.Millisecond).Eventually("configmap/a") })
}

// TestChildStarts passes in a child, also after another test of the same process lost its server.
func TestChildStarts(t *testing.T) {
	if !isChild() {
		return
	}
	setpointtest.Start(t, apiOnly).Apply(configMap)
}

// TestChildTemplate loses its server between two forks of a template.
func TestChildTemplate(t *testing.T) {
	if !isChild() {
		return
	}
	template := setpointtest.NewTemplate(apiOnly, func(c *setpointtest.Cluster) { c.Apply(configMap) })
	for range 2 {
		t.Run("fork", func(t *testing.T) {
			if template.Fork(t).Get("configmap/a") == nil {
				t.Error("the template is not filled")
			}
		})
		_, _ = syscall.Wait4(killServer(t), nil, 0, nil) // it is gone then
	}
}

// TestChildLeavesNothing counts the goroutines of its process.
func TestChildLeavesNothing(t *testing.T) {
	if !isChild() {
		return
	}
	before := runtime.NumGoroutine()
	t.Run("uses", func(t *testing.T) {
		c := setpointtest.Start(t, apiOnly)
		c.Apply(configMap)
		watch, err := c.Fork(t).Kubernetes().CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range watch.ResultChan() { // until the cluster ends
			}
		}()
		c.Reset(c.Mark())
		c.Eventually("configmap/a")
	})
	ended := time.NewTimer(goroutinesLimit)
	tick := time.NewTicker(lookPause)
	for runtime.NumGoroutine() > before {
		select {
		case <-tick.C:
		case <-ended.C:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, and before %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

const (
	// goroutinesLimit is how long those may take to end whose connections were closed, endsLimit a cluster whose process has ended.
	goroutinesLimit = 10 * time.Second
	endsLimit       = 30 * time.Second
	lookPause       = 10 * time.Millisecond
)

// TestChildExits ends a child in the middle of a test.
func TestChildExits(t *testing.T) {
	if !isChild() {
		return
	}
	text, err := os.ReadFile(setpointtest.Start(t, apiOnly).Kubeconfig())
	if err == nil {
		err = os.WriteFile(os.Getenv(childKubeconfig), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	os.Exit(3)
}

// TestKilledServer: the test that used it fails at its line and says so; the next one has another server.
func TestKilledServer(t *testing.T) {
	output, err := child(t, "^(TestChildKilledServer|TestChildStarts)$")
	said := regexp.MustCompile(`process_test.go:\d+: beside: configmap/a: .*the test server that held this cluster has ended, because it was killed`)
	if err == nil || !said.MatchString(output) || !strings.Contains(output, "--- PASS: TestChildStarts") {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestInChildren: what has a process of its own passes there.
func TestInChildren(t *testing.T) {
	for _, name := range []string{"TestChildTemplate", "TestChildLeavesNothing"} {
		if output, err := child(t, "^"+name+"$"); err != nil || !strings.Contains(output, "--- PASS: "+name) {
			t.Errorf("%v\n%s", err, output)
		}
	}
}

// TestExit: the cluster of a test that calls os.Exit ends with its process.
func TestExit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	output, err := child(t, "^TestChildExits$", childKubeconfig+"="+path)
	config, loadErr := clientcmd.BuildConfigFromFlags("", path)
	if err == nil || loadErr != nil {
		t.Fatalf("%v, %v\n%s", err, loadErr, output)
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	ended := time.NewTimer(endsLimit)
	tick := time.NewTicker(lookPause)
	for {
		conn, err := net.Dial("tcp", at.Host)
		if err != nil {
			return // it has ended
		}
		conn.Close()
		select {
		case <-tick.C:
		case <-ended.C:
			t.Fatalf("the cluster is there %v after its process has ended", endsLimit)
		}
	}
}

// TestMisuse: each mistake fails the test at its line, with one sentence that says what to do.
func TestMisuse(t *testing.T) {
	output, err := child(t, "^TestChildMisuse$")
	if err == nil {
		t.Error("it passes")
	}
	for _, says := range []string{
		"a bubble of testing/synctest cannot wait for another process: import setpointtest in place of setpointtest/beside",
		`this test has a cluster named "" already: use Fork`,
		`Start: server server-1: there is no control loop "deployments": they are apiservice-controller`,
		`KillNode: the cluster simulates no node "sim-1": it has 0`,
		"Advance(-1s): time does not go back",
		"configmap/a is not there after 1ms: there is no such object",
	} {
		if !regexp.MustCompile(`process_test.go:\d+: beside: ` + regexp.QuoteMeta(says)).MatchString(output) {
			t.Errorf("nothing says %q in\n%s", says, output)
		}
	}
}
