package podconfig

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

func makeLog(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAPodKeepsTheFolderOfItsLogs: a node that gets another LogsRoot has pods of before. It finds and removes their logs, and leaves
// those of others.
func TestAPodKeepsTheFolderOfItsLogs(t *testing.T) {
	root, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	var all []string
	for _, logsRoot := range []string{"", first, second} {
		d := Dirs{Root: root, LogsRoot: logsRoot}
		if err := d.RememberLogs(); err != nil {
			t.Fatal(err)
		}
		for _, former := range all {
			uid := filepath.Base(former)[len("ns_a_"):]
			if got := d.Logs("ns", "a", uid); got != former {
				t.Errorf("with logs of new pods in %q those of an older one are in %s, want %s", logsRoot, got, former)
			}
		}
		folder := d.Logs("ns", "a", fmt.Sprint("uid", len(all)))
		if want := cmp.Or(logsRoot, filepath.Join(root, "logs")); filepath.Dir(folder) != want {
			t.Errorf("%s is not in %s", folder, want)
		}
		makeLog(t, filepath.Join(folder, "c", "0.log"))
		all = append(all, folder)
	}
	other := filepath.Join(second, "ns_a_another-uid0")
	makeLog(t, filepath.Join(other, "c", "0.log"))

	d := Dirs{Root: root, LogsRoot: second}
	if err := d.RememberLogs(); err != nil {
		t.Fatal(err)
	}
	for i, folder := range all {
		if err := d.RemoveLogs(types.UID(fmt.Sprint("uid", i))); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if err := d.RemoveLogs(""); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// TestALogIsWhereTheRuntimeSays, or where it was told to write.
func TestALogIsWhereTheRuntimeSays(t *testing.T) {
	run := &observed.Container{ContainerStatus: &runtimeapi.ContainerStatus{LogPath: "/before/c/1.log", Labels: map[string]string{
		observed.LabelPodNamespace: "ns", observed.LabelPodName: "a", observed.LabelPodUID: "uid", observed.LabelContainerName: "c",
	}, Annotations: map[string]string{observed.AnnotationRestartCount: "2"}}}
	d := Dirs{Root: "/data", LogsRoot: "/var/log/pods"}
	if got := d.LogFile(run); got != "/before/c/1.log" {
		t.Error(got)
	}
	run.LogPath = ""
	if got := d.LogFile(run); got != "/var/log/pods/ns_a_uid/c/2.log" {
		t.Error(got)
	}
}
