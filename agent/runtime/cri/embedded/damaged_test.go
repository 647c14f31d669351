package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func damage(t *testing.T, dir string, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, recordName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedRecordCostsOnePod: the agent starts, nothing of that pod runs on beside a second one, and others do not notice.
func TestADamagedRecordCostsOnePod(t *testing.T) {
	for name, content := range map[string]string{
		"cut off": `{"ID":"`, "empty": "", "of another": `{"ID":"x","CgroupPath":"/setpoint-other/x"}`, "of the host": `{"ID":"x","CgroupPath":"/"}`,
	} {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t)
			first := open(t, config)
			broken, healthy := runPod(t, first, nil), runPod(t, first, nil)
			victim, survivor := broken.start(containerConfig("stubborn")), healthy.start(containerConfig("tick"))
			broken.waitLog(victim, "stubborn")
			victimPID, shimPID, survivorPID := broken.pid(victim), broken.shimPID(), healthy.pid(survivor)
			if err := first.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(first.sandboxesDir(), broken.id), content)

			second, err := New(config)
			if err != nil {
				t.Fatalf("one damaged record stops the runtime: %v", err)
			}
			t.Cleanup(func() { removeAll(t, second) })
			for _, pid := range []int{victimPID, shimPID} {
				eventually(t, func() error { return gone(pid) })
			}
			if gone(survivorPID) == nil {
				t.Error("the other pod ended too")
			}
			if list, _ := second.ListPodSandbox(t.Context(), nil); len(list) != 1 || list[0].Id != healthy.id {
				t.Errorf("sandboxes %v", list)
			}
			for _, left := range []string{filepath.Join(second.sandboxesDir(), broken.id), filepath.Join(second.containersDir(), victim)} {
				if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is left: %v", left, err)
				}
			}
			if kept, _ := os.ReadDir(second.damagedDir()); len(kept) != 1 || !strings.Contains(kept[0].Name(), broken.id) {
				t.Errorf("set aside: %v", kept)
			}
			again := runPod(t, second, nil)
			if again.ip() == healthy.ip() {
				t.Errorf("address %s given twice", again.ip())
			}
		})
	}
}

func TestADamagedContainerRecordCostsOneContainer(t *testing.T) {
	config := testConfig(t)
	first := open(t, config)
	p := runPod(t, first, nil)
	victim, other := p.start(containerConfig("stubborn")), p.start(named("other", "tick"))
	p.waitLog(victim, "stubborn")
	victimPID := p.pid(victim)
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	damage(t, filepath.Join(first.containersDir(), victim), "{")
	second := open(t, config)
	t.Cleanup(func() { removeAll(t, second) })
	eventually(t, func() error { return gone(victimPID) })
	again := &pod{t, second, p.config, p.id}
	if full := again.status(other); full.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("the pod's other container: %v", full.State)
	}
	if list, _ := second.ListContainers(t.Context(), nil); len(list) != 1 {
		t.Errorf("containers %v", list)
	}
}

func TestDamagedRecordsAreFew(t *testing.T) {
	r := newRuntime(t)
	for range damagedMax + 5 {
		dir := filepath.Join(r.sandboxesDir(), newID(sandboxIDBytes))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		damage(t, dir, "{")
		r.abandonSandbox(filepath.Base(dir), errForeignRecord)
	}
	if kept, _ := os.ReadDir(r.damagedDir()); len(kept) != damagedMax {
		t.Errorf("%d kept, want %d", len(kept), damagedMax)
	}
}
