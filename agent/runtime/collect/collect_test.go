package collect

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
)

// machine is a runtime whose images fill a disk of 1000 bytes.
type machine struct {
	cri.Runtime
	mu         sync.Mutex
	images     []*runtimeapi.Image
	containers []*runtimeapi.Container
	mounts     map[string]string // of containers: an image that they mount
	others     int64             // bytes of the disk that are no image
	away       error
}

func (m *machine) ListImages(context.Context, *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.images), m.away
}

func (m *machine) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.containers), nil
}

func (m *machine) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	mount := &runtimeapi.Mount{Image: &runtimeapi.ImageSpec{Image: m.mounts[id]}}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{Mounts: []*runtimeapi.Mount{mount}}}, nil
}

func (m *machine) RemoveImage(_ context.Context, spec *runtimeapi.ImageSpec) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.images = slices.DeleteFunc(m.images, func(i *runtimeapi.Image) bool { return i.Id == spec.Image })
	return nil
}

func (m *machine) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	id := &runtimeapi.FilesystemIdentifier{Mountpoint: "/images"}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{FsId: id}}}, nil
}

func (m *machine) disk(path string) (capacity, available int64, err error) {
	if path != "/images" {
		return 0, 0, errors.New("no such disk: " + path)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	available = 1000 - m.others
	for _, i := range m.images {
		available -= int64(i.Size)
	}
	return 1000, available, nil
}

func (m *machine) left() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for _, i := range m.images {
		ids = append(ids, i.Id)
	}
	return strings.Join(ids, " ")
}

func (m *machine) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// collecting runs body beside Run.
func collecting(t *testing.T, m *machine, p Policy, body func(events *record.FakeRecorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			New(Config{NodeName: "n1", Runtime: m, Policy: p, Events: recorder, Disk: m.disk,
				Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}).Run(ctx)
		}()
		synctest.Wait()
		body(recorder)
		cancel()
		<-done
	})
}

func round() {
	time.Sleep(every)
	synctest.Wait()
}

func told(r *record.FakeRecorder) (out []string) {
	for len(r.Events) > 0 {
		out = append(out, <-r.Events)
	}
	return out
}

func TestUnusedImagesMakeRoom(t *testing.T) {
	m := &machine{
		images: []*runtimeapi.Image{
			{Id: "pause", Size: 10, Pinned: true}, {Id: "runs", Size: 100, RepoTags: []string{"runs:1"}}, {Id: "mounted", Size: 100},
			{Id: "used", Size: 100}, {Id: "never", Size: 100},
		},
		containers: []*runtimeapi.Container{
			{Id: "c1", Image: &runtimeapi.ImageSpec{Image: "runs:1"}}, {Id: "c2", ImageId: "used"},
		},
		mounts: map[string]string{"c1": "mounted"},
	}
	collecting(t, m, DefaultPolicy, func(r *record.FakeRecorder) {
		m.change(func() { m.containers, m.others = m.containers[:1], 430 })
		round() // 84 %
		if got := m.left(); got != "pause runs mounted used never" {
			t.Errorf("below the threshold, left: %s", got)
		}
		m.change(func() { m.others = 440 })
		round() // 85 %
		if got := m.left(); got != "pause runs mounted used" {
			t.Errorf("at the threshold, left: %s", got)
		}
		m.change(func() { m.others = 650 })
		round() // 96 %
		if got := m.left(); got != "pause runs mounted" {
			t.Errorf("above the threshold, left: %s", got)
		}
		if e := told(r); len(e) != 1 || !strings.Contains(e[0], "FreeDiskSpaceFailed") || !strings.Contains(e[0], "(96% of 1000 B used)") {
			t.Errorf("events: %q", e)
		}
		round() // 86 %, and the second failure in a row
		if e := told(r); len(e) != 2 || !strings.Contains(e[1], "ImageGCFailed") {
			t.Errorf("events: %q", e)
		}
	})
}

func TestOldImagesGoWhateverTheDiskSays(t *testing.T) {
	m := &machine{images: []*runtimeapi.Image{{Id: "old", Size: 1}, {Id: "runs", Size: 1}},
		containers: []*runtimeapi.Container{{Id: "c", ImageRef: "runs"}}}
	collecting(t, m, Policy{HighPercent: 100, LowPercent: 80, MaxAge: time.Hour}, func(*record.FakeRecorder) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := m.left(); got != "old runs" {
			t.Errorf("after an hour, left: %s", got)
		}
		round()
		if got := m.left(); got != "runs" {
			t.Errorf("after more than an hour, left: %s", got)
		}
	})
}

func TestAFailureThatStaysGivesAnEvent(t *testing.T) {
	m := &machine{away: errors.New("the runtime is away")}
	collecting(t, m, DefaultPolicy, func(r *record.FakeRecorder) {
		if e := told(r); len(e) != 0 {
			t.Errorf("the first time: %q", e)
		}
		round()
		if e := told(r); len(e) != 1 || e[0] != "Warning ImageGCFailed the runtime is away" {
			t.Errorf("the second time: %q", e)
		}
	})
}

func TestAPolicyThatNeverRemovesEndsAtOnce(t *testing.T) {
	for _, p := range []Policy{{}, {HighPercent: 100, LowPercent: 80}} {
		New(Config{Policy: p}).Run(t.Context())
	}
}

// TestWhenPodsWouldHaveToGo all unused images go before them, however full the disk is, but those that are young.
func TestWhenPodsWouldHaveToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{images: []*runtimeapi.Image{{Id: "old", Size: 1}, {Id: "used", Size: 1}}, containers: []*runtimeapi.Container{{ImageId: "used"}}}
		c := New(Config{NodeName: "n1", Runtime: m, Policy: DefaultPolicy, Events: record.NewFakeRecorder(1), Disk: m.disk})
		if err := c.RemoveUnused(t.Context()); err != nil || m.left() != "old used" {
			t.Fatalf("left %q, %v", m.left(), err)
		}
		time.Sleep(DefaultPolicy.MinAge)
		m.change(func() { m.images = append(m.images, &runtimeapi.Image{Id: "young"}) })
		if err := c.RemoveUnused(t.Context()); err != nil || m.left() != "used young" {
			t.Errorf("left %q, %v", m.left(), err)
		}
	})
}
