package podconfig

import (
	"os"
	"path/filepath"
	"testing"

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

// TestLogsOfBothPlacesAreRemoved: a node that got another LogsRoot has pods of before, and shares it with others.
func TestLogsOfBothPlacesAreRemoved(t *testing.T) {
	before := Dirs{Root: t.TempDir()}
	after := Dirs{Root: before.Root, LogsRoot: t.TempDir()}
	other := filepath.Join(after.Logs("ns", "a", "other-uid"), "c", "0.log")
	mine := []string{filepath.Join(before.Logs("ns", "a", "uid"), "c", "0.log"), filepath.Join(after.Logs("ns", "a", "uid"), "c", "0.log")}
	for _, path := range append(mine, other) {
		makeLog(t, path)
	}
	if err := after.RemoveLogs("uid"); err != nil {
		t.Fatal(err)
	}
	for _, path := range mine {
		if _, err := os.Stat(filepath.Dir(filepath.Dir(path))); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if err := (Dirs{Root: filepath.Join(t.TempDir(), "absent")}).RemoveLogs("uid"); err != nil {
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
