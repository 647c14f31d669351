package nodefaults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// groupsAreLost: somebody kills what is in a pod's groups and removes them, behind the agent and while there is none; or moves its
// processes elsewhere, so that the pod runs on in no group of its own. A pod whose processes are gone starts again, one that runs
// on is left alone, and says why nobody can come into it (exec); all are gone without a trace when they are deleted.
func groupsAreLost(t *testing.T, n *node) {
	names := []string{"groupless-0", "groupless-1", "groupless-2", "groupless-3"}
	for i, name := range names {
		n.create(t, killPod(name, i))
	}
	n.awaitReady(t, names...)

	n.loseGroups(t, names[0], true)
	n.loseGroups(t, names[1], true)
	n.awaitRestarted(t, names[0])
	n.awaitRestarted(t, names[1])

	n.killAgent(t)
	n.loseGroups(t, names[2], true)
	n.loseGroups(t, names[3], false)
	n.startAgent(t)
	n.awaitRestarted(t, names[2])

	n.loseGroups(t, names[0], false)
	for _, name := range []string{names[0], names[3]} {
		n.awaitReady(t, name)
		if out, err := n.run("kubectl", "exec", name, "--", "/workload", "tell", "here"); !strings.Contains(string(out), "join cgroup") {
			t.Errorf("exec in a pod without groups: %v %s", err, out)
		}
	}
}

func (n *node) awaitRestarted(t *testing.T, name string) {
	t.Helper()
	n.await(t, podTimeMax, name+" again", func(ctx context.Context) string {
		pod, err := n.pods().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if pod.Status.ContainerStatuses[0].RestartCount == 0 {
			return "was not restarted\n" + n.describe(ctx, pod)
		}
		if why := isReady(pod); why != "" {
			return why + "\n" + n.describe(ctx, pod)
		}
		return ""
	})
}

// loseGroups takes the groups of a pod away in all hierarchies: with what is in them, or after it was moved to the outermost ones.
func (n *node) loseGroups(t *testing.T, pod string, kill bool) {
	t.Helper()
	groups := n.groupsOf(t, pod)
	if len(groups) == 0 {
		t.Fatalf("%s has no groups", pod)
	}
	n.await(t, podTimeMax, "removing groups", func(context.Context) string {
		for _, group := range slices.Backward(groups) { // what is below comes later
			for _, pid := range processesIn(group) {
				if kill {
					_ = unix.Kill(pid, unix.SIGKILL)
					continue
				}
				_ = os.WriteFile(filepath.Join(hierarchyOf(group), "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
			}
			if err := unix.Rmdir(group); err != nil && err != unix.ENOENT {
				return fmt.Sprintf("%s: %v", group, err)
			}
		}
		return ""
	})
}

// groupsOf finds the groups that a pod's processes are in, with those below and beside them, of all hierarchies.
func (n *node) groupsOf(t *testing.T, pod string) []string {
	t.Helper()
	sandbox := filepath.Base(processes()[shimOf(t, pod)][1])
	var found []string
	for group := range n.look()["cgroups"] {
		if slices.Contains(strings.Split(group, "/"), sandbox) {
			found = append(found, group)
		}
	}
	slices.Sort(found)
	return found
}

func processesIn(group string) (pids []int) {
	text, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hierarchyOf is the outermost group, one folder below where all are mounted if there are several.
func hierarchyOf(group string) string {
	for dir := group; ; dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), "setpoint-") {
			return filepath.Dir(dir)
		}
	}
}
