package pods

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// TestCollectorsFindLogs of every container as soon as it has started, until its pod is deleted.
func TestCollectorsFindLogs(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.stopAgent()
		w.logs, w.links = filepath.Join(w.dir, "var-log-pods"), t.TempDir()
		w.startAgent()
		w.create(newPod("p", "web"))
		dir := filepath.Join(w.logs, "default_p_"+string(w.get("p").UID))
		links, err := filepath.Glob(filepath.Join(w.links, "p_default_c0-*.log"))
		if err != nil || len(links) != 1 {
			t.Fatalf("links %v, %v", links, err)
		}
		if to, err := os.Readlink(links[0]); err != nil || to != filepath.Join(dir, "c0", "0.log") {
			t.Errorf("it leads to %s, %v", to, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "c0")); err != nil {
			t.Error(err)
		}
		w.delete("p", 0)
		w.settle()
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("after the pod: %v", err)
		}
	})
}

// TestLogsThatAreLeftAloneAreRemoved: an agent before this one has removed all else of the pod.
func TestLogsThatAreLeftAloneAreRemoved(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		w.stopAgent()
		left := filepath.Join(w.dir, "logs", "default_q_uid-of-q")
		if err := os.Mkdir(left, 0o700); err != nil {
			t.Fatal(err)
		}
		w.startAgent()
		w.settle()
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("they are left: %v", err)
		}
		if _, err := os.Stat(w.manager.Dirs.PodLogs(w.get("p"))); err != nil {
			t.Error(err)
		}
	})
}

// TestLogsOfAPodThatNobodyKnowsAreRemoved: the machine has started anew, and the pod was deleted meanwhile.
func TestLogsOfAPodThatNobodyKnowsAreRemoved(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		dir := w.manager.Dirs.PodLogs(w.get("p"))
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
		w.stopAgent()
		if err := w.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.runtime = podstest.New(nil)
		w.startAgent()
		w.settle()
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("they are left: %v", err)
		}
	})
}
