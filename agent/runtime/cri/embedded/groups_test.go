package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestEveryProcessIsInItsGroup: all threads of a pod's shim, its pause process and its container, in each hierarchy that their groups
// are in.
func TestEveryProcessIsInItsGroup(t *testing.T) { inGroups(t, nil) }

func TestEveryProcessOfUsersIsInItsGroup(t *testing.T) { inGroups(t, ownUsers) }

func inGroups(t *testing.T, change func(*runtimeapi.PodSandboxConfig)) {
	t.Helper()
	r := newRuntime(t)
	p := runPod(t, r, change)
	id := p.start(containerConfig("sleep"))
	c, err := r.container(id)
	if err != nil {
		t.Fatal(err)
	}
	inGroup(t, c.record.PID, c.record.CgroupPath, len(c.group.Dirs()))
	for _, pid := range []int{c.sandbox.record.ShimPID, c.sandbox.record.HolderPID} {
		inGroup(t, pid, c.sandbox.record.CgroupPath+"/sandbox", len(c.sandbox.leaf.Dirs()))
	}
}

func inGroup(t *testing.T, pid int, path string, hierarchies int) {
	t.Helper()
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/cgroup")
	if err != nil || len(threads) == 0 {
		t.Fatalf("process %d: %v", pid, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		found := 0
		for line := range bytes.Lines(text) {
			if strings.HasSuffix(strings.TrimSpace(string(line)), path) {
				found++
			}
		}
		if err != nil || found != hierarchies {
			t.Errorf("%s: in %d of %d groups %s: %v\n%s", thread, found, hierarchies, path, err, text)
		}
	}
}
