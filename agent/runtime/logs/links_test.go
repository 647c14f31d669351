package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// container is one of a pod whose log is at path.
func container(pod, path string) *runtimeapi.ContainerStatus {
	return &runtimeapi.ContainerStatus{Id: "0123abcd", LogPath: path, Labels: map[string]string{
		observed.LabelPodName: pod, observed.LabelPodNamespace: "shop", observed.LabelContainerName: "app",
	}}
}

// TestALinkTellsWhoseLogItIs: the names are those by which collectors find pod, namespace and container, shortened as upstream's.
func TestALinkTellsWhoseLogItIs(t *testing.T) {
	links, root := Links{filepath.Join(t.TempDir(), "containers")}, t.TempDir()
	log := filepath.Join(root, "shop_web-1_uid", "app", "0.log")
	long := strings.Repeat("a", 253)
	for _, c := range []*runtimeapi.ContainerStatus{container("web-1", log), container("web-1", log), container(long, log)} {
		if err := links.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"web-1_shop_app-0123abcd.log", (long + "_shop_app-0123abcd")[:251] + ".log"} {
		if to, err := os.Readlink(filepath.Join(links.Dir, name)); err != nil || to != log {
			t.Errorf("%s leads to %q, %v", name, to, err)
		}
	}
}

// TestLinksGoWithTheirLogs, and those of others on this machine stay.
func TestLinksGoWithTheirLogs(t *testing.T) {
	links, root := Links{t.TempDir()}, t.TempDir()
	there, gone := filepath.Join(root, "there.log"), filepath.Join(root, "gone.log")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for pod, log := range map[string]string{"there": there, "gone": gone, "other": filepath.Join(root+"-of-another", "gone.log")} {
		if err := links.Add(container(pod, log)); err != nil {
			t.Fatal(err)
		}
	}
	if err := links.Prune(root); err != nil {
		t.Fatal(err)
	}
	for pod, kept := range map[string]bool{"there": true, "gone": false, "other": true} {
		_, err := os.Lstat(filepath.Join(links.Dir, pod+"_shop_app-0123abcd.log"))
		if errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%s is kept: %v, want %v", pod, err == nil, kept)
		}
	}
}

// TestNoFolderNoLinks: nor does a runtime that does not say where a log is.
func TestNoFolderNoLinks(t *testing.T) {
	if err := errors.Join(Links{}.Add(container("web", "/log")), Links{}.Prune("/")); err != nil {
		t.Error(err)
	}
	if err := (Links{filepath.Join(t.TempDir(), "absent")}).Prune("/"); err != nil {
		t.Error(err)
	}
	links := Links{t.TempDir()}
	if err := links.Add(container("web", "")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(links.Dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestALookRestoresLinks of containers that were started before there were any.
func TestALookRestoresLinks(t *testing.T) {
	w := &writer{path: filepath.Join(t.TempDir(), "0.log")}
	w.log(t, "hello")
	now := time.Now()
	r := newRotator(Config{Runtime: w, SizeMaxBytes: 100, FilesMax: 2, Links: Links{t.TempDir()}, Roots: []string{filepath.Dir(w.path)}}, now)
	if err := r.rotateAll(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(r.Links.Dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
