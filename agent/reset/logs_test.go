package reset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/leftovers"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// TestLogsOutsideOfTheDataDirectoryGo, of the node's own pods, and nothing that a client of the runtime may have called a folder of logs.
func TestLogsOutsideOfTheDataDirectoryGo(t *testing.T) {
	data, elsewhere := t.TempDir(), t.TempDir()
	dirs := podconfig.Dirs{Root: data, LogsRoot: elsewhere}
	if err := dirs.RememberLogs(); err != nil {
		t.Fatal(err)
	}
	mine, other := filepath.Join(elsewhere, "ns_a_uid"), filepath.Join(elsewhere, "ns_b_another")
	for _, folder := range []string{mine, other} {
		makeFolder(t, folder)
	}
	r := &Report{DataDir: data}
	if err := r.logs([]leftovers.Pod{{Name: "ns/a", UID: "uid"}, {Name: "of crictl"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine); !os.IsNotExist(err) {
		t.Errorf("%s: %v", mine, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if len(r.Removed) != 1 || r.Removed[0].Name != mine {
		t.Errorf("%+v", r.Removed)
	}
}
