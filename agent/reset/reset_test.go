package reset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLookRefusesWhatIsNotOurs(t *testing.T) {
	for name, c := range map[string]struct {
		files, folders []string
		exists         bool
		pods           int
		want           error
	}{
		"absent":                         {},
		"empty":                          {folders: []string{"."}, exists: true},
		"of a server":                    {files: []string{"server.lock", "raft/log"}, exists: true},
		"of an agent":                    {files: []string{"agent.lock", "logs/a"}, exists: true},
		"somebody's":                     {files: []string{"images/holiday.jpg"}, exists: true, want: ErrNoDataDir},
		"somebody's, with a folder pods": {files: []string{"pods/whales.txt"}, exists: true, want: ErrNoDataDir},
		"what rm leaves of a node's":     {folders: []string{"pods/uid/volumes/mem", "runtime/sandboxes/id/shm"}, exists: true},
		"what rm leaves, with files of pods": {
			folders: []string{"pods/uid/volumes/mem"}, exists: true, pods: 1,
			files: []string{
				"runtime/sandboxes/0123456789abcdef0123456789abcdef/record.json", "runtime/images/records/a",
				"runtime/containers/0123456789abcdef0123456789abcdef/record.json", "runtime/containers/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/record.json", "pods/269f84ec-3d8d-40e5-a837-f855c154decf/etc-hosts",
			},
		},
		"what rm leaves, and images of somebody": {files: []string{"runtime/images/holiday.jpg"}, exists: true, want: ErrNoDataDir},
		"what rm leaves, and a file more":        {folders: []string{"pods/uid/volumes/mem"}, files: []string{"notes"}, exists: true, want: ErrNoDataDir},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 && c.want == nil && slices.ContainsFunc(append(c.folders, c.files...), inRuntime) {
				c.want = ErrNotRoot
			}
			dir := filepath.Join(t.TempDir(), "data")
			for _, folder := range c.folders {
				makeFolder(t, filepath.Join(dir, folder))
			}
			for _, file := range c.files {
				makeFolder(t, filepath.Dir(filepath.Join(dir, file)))
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			plan, err := Look(dir)
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err == nil && (plan.Exists != c.exists || len(plan.Pods) != c.pods) {
				t.Errorf("%+v", plan)
			}
		})
	}
}

func inRuntime(path string) bool { return strings.HasPrefix(path, "runtime/") }

func makeFolder(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestATrustFolderElsewhereIsKept(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/setpoint/admin.kubeconfig", filepath.Join(dir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	r := &Report{DataDir: dir}
	r.keepTrust()
	if len(r.Kept) != 1 || r.Kept[0].Name != "/etc/setpoint" {
		t.Errorf("%+v", r.Kept)
	}
}
