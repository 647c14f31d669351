package logs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// writer is a runtime with one container that logs to path.
type writer struct {
	criapi.RuntimeService
	path   string
	broken error
	looks  atomic.Int32
}

func (w *writer) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	w.looks.Add(1)
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

// add makes the log longer.
func (w *writer) add(t *testing.T, bytes int) {
	t.Helper()
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(make([]byte, bytes))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// taken is what all its files take.
func (w *writer) taken(t *testing.T) (bytes int) {
	t.Helper()
	list, err := filepath.Glob(w.path + "*")
	for _, name := range list {
		info, failed := os.Stat(name)
		if err = errors.Join(err, failed); err != nil {
			break
		}
		bytes += int(info.Size())
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func files(t *testing.T, path string) int {
	t.Helper()
	list, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestRotation(t *testing.T) { synctest.Test(t, rotation) }

func rotation(t *testing.T) {
	w := &writer{path: filepath.Join(t.TempDir(), "0.log")}
	c := newRotator(Config{Runtime: w, SizeMaxBytes: 10, FilesMax: 3}, time.Now())
	rotate := func() error { return c.rotateAll(t.Context(), time.Now()) }
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
	c := newRotator(Config{Runtime: w, SizeMaxBytes: 10, FilesMax: 3}, time.Now())
	if err := c.rotateAll(t.Context(), time.Now()); err == nil {
		t.Error("the error was lost")
	}
	if data, err := os.ReadFile(w.path); err != nil || string(data) != "long enough to go" || files(t, w.path) != 1 {
		t.Errorf("%q %v", data, err)
	}
}

// TestALogThatGrowsFast is looked at each second, takes about as much as the limits say, and is one among others again when it is slow.
func TestALogThatGrowsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{path: filepath.Join(t.TempDir(), "0.log")}
		c := Config{Runtime: w, SizeMaxBytes: 1000, FilesMax: 5, LookEvery: 10 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); Rotate(ctx, c) }()
		largest := 0
		for second := range 60 {
			w.add(t, 3000)
			time.Sleep(time.Second)
			synctest.Wait()
			if taken := w.taken(t); second > 10 {
				largest = max(largest, taken)
			}
		}
		if budget := 2*4*1000 + 3000; largest > budget {
			t.Errorf("the log takes %d bytes, want %d at most", largest, budget)
		}
		looks := w.looks.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := w.looks.Load() - looks; got != 360 {
			t.Errorf("%d looks at all logs in an hour, want 360", got)
		}
		cancel()
		<-ended
	})
}

// TestWhenIsTheNextLook: after a second while a log grows fast, and when it is time for all else.
func TestWhenIsTheNextLook(t *testing.T) {
	now := time.Now()
	r := newRotator(Config{LookEvery: 10 * time.Second}, now.Add(-4*time.Second))
	if got := r.pause(now); got != 6*time.Second {
		t.Errorf("no log is fast: %v", got)
	}
	r.quick["c"] = quick{"/log", now}
	if got := r.pause(now); got != quickLook {
		t.Errorf("one is: %v", got)
	}
	if got := r.pause(now.Add(5500 * time.Millisecond)); got != 500*time.Millisecond {
		t.Errorf("it is nearly time for all: %v", got)
	}
}

// TestALogThatCannotBeRotated keeps no other from it.
func TestALogThatCannotBeRotated(t *testing.T) {
	folder := t.TempDir()
	several := &several{broken: map[string]bool{"0": true, "2": true}, folder: folder}
	for id := range 4 {
		if err := os.WriteFile(several.path(strconv.Itoa(id)), []byte("long enough to go"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := newRotator(Config{Runtime: several, SizeMaxBytes: 10, FilesMax: 3}, time.Now()).rotateAll(t.Context(), time.Now())
	for id, want := range map[string]int{"0": 1, "1": 2, "2": 1, "3": 2} {
		if got := files(t, several.path(id)); got != want {
			t.Errorf("container %s: %d files, want %d", id, got, want)
		}
		if told := err != nil && strings.Contains(err.Error(), "container "+id); told != several.broken[id] {
			t.Errorf("container %s: told %v: %v", id, told, err)
		}
	}
}

// several is a runtime with four containers, some of which do not open their logs again.
type several struct {
	criapi.RuntimeService
	broken map[string]bool
	folder string
}

func (s *several) path(id string) string { return filepath.Join(s.folder, id+".log") }

func (s *several) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return []*runtimeapi.Container{{Id: "0"}, {Id: "1"}, {Id: "2"}, {Id: "3"}}, nil
}

func (s *several) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{LogPath: s.path(id)}}, nil
}

func (s *several) ReopenContainerLog(_ context.Context, id string) error {
	if s.broken[id] {
		return errors.New("no")
	}
	return os.WriteFile(s.path(id), nil, 0o600)
}
