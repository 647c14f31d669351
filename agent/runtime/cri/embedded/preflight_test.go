package embedded

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const aloneEnv = "SETPOINT_TEST_ALONE"

// alone runs a test again in a mount namespace of its own, and says whether this is that run.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnv) != "" {
		return true
	}
	again := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), aloneEnv+"=1")
	again.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// runtimeCondition returns RuntimeReady.
func runtimeCondition(t *testing.T, r *Runtime) *runtimeapi.RuntimeCondition {
	t.Helper()
	answer, err := r.Status(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetStatus().GetConditions()[0]
}

func TestPreflight(t *testing.T) {
	r := newRuntime(t)
	if c := runtimeCondition(t, r); !c.Status {
		t.Errorf("a machine that runs the other tests: %s", c.Message)
	}
	left, err := os.ReadDir(r.config.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "preflight") {
			t.Errorf("%s is left", entry.Name())
		}
	}
}

// TestPreflightCgroupsHidden: without cgroups, as in a container that was given none.
func TestPreflightCgroupsHidden(t *testing.T) {
	config := testConfig(t)
	if !alone(t) {
		return
	}
	if err := unix.Mount("none", "/sys/fs/cgroup", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if c := runtimeCondition(t, r); c.Status || !strings.Contains(c.Message, "/sys/fs/cgroup") {
		t.Errorf("condition: %v", c)
	}
	if err := unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
}
