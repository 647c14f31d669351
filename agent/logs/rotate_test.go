package logs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// writer is a runtime with one container that logs to path.
type writer struct {
	criapi.RuntimeService
	path   string
	broken error
}

func (w *writer) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return []*runtimeapi.Container{{Id: "c"}}, nil
}

func (w *writer) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{LogPath: w.path}}, nil
}

func (w *writer) ReopenContainerLog(context.Context, string) error {
	if w.broken != nil {
		return w.broken
	}
	return os.WriteFile(w.path, nil, 0o600)
}

func (w *writer) log(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, path string) int {
	t.Helper()
	list, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestRotation(t *testing.T) {
	w := &writer{path: filepath.Join(t.TempDir(), "0.log")}
	c := Config{Runtime: w, SizeMaxBytes: 10, FilesMax: 3}
	rotate := func() error { return c.rotateAll(t.Context()) }
	w.log(t, "short")
	if err := rotate(); err != nil || files(t, w.path) != 1 {
		t.Errorf("a short log was rotated: %v", err)
	}
	for range 5 {
		w.log(t, "long enough to go")
		if err := rotate(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // names carry the time
	}
	if n := files(t, w.path); n != 3 {
		t.Errorf("%d files, want 3", n)
	}
	if info, err := os.Stat(w.path); err != nil || info.Size() != 0 {
		t.Errorf("the present file: %v %v", info, err)
	}
}

func TestAFailedRotationChangesNothing(t *testing.T) {
	w := &writer{path: filepath.Join(t.TempDir(), "0.log"), broken: errors.New("no")}
	w.log(t, "long enough to go")
	c := Config{Runtime: w, SizeMaxBytes: 10, FilesMax: 3}
	if err := c.rotateAll(t.Context()); err == nil {
		t.Error("the error was lost")
	}
	if data, err := os.ReadFile(w.path); err != nil || string(data) != "long enough to go" || files(t, w.path) != 1 {
		t.Errorf("%q %v", data, err)
	}
}
