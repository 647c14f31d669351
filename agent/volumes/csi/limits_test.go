package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
)

// limited is a driver whose node can have as many volumes as it was asked before.
type limited struct {
	spec.NodeClient
	asked atomic.Int64
}

func (l *limited) NodeGetInfo(context.Context, *spec.NodeGetInfoRequest, ...grpc.CallOption) (*spec.NodeGetInfoResponse, error) {
	return &spec.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: l.asked.Add(1)}, nil
}

// asking is a node whose driver d is asked as often as its CSIDriver says.
type asking struct {
	client *fake.Clientset
	driver *limited
	m      *Manager
}

func (a *asking) every(t *testing.T, seconds *int64) {
	t.Helper()
	drivers := a.client.StorageV1().CSIDrivers()
	object, err := drivers.Get(t.Context(), "d", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Spec.NodeAllocatableUpdatePeriodSeconds = seconds
	if _, err := drivers.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// limit is what the CSINode says, 0 for nothing.
func (a *asking) limit(t *testing.T) int32 {
	t.Helper()
	synctest.Wait()
	found, err := a.client.StorageV1().CSINodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil || len(found.Spec.Drivers) == 0 {
		return 0
	}
	return *found.Spec.Drivers[0].Allocatable.Count
}

func inBubble(t *testing.T, period *int64, body func(t *testing.T, a *asking)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
			&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: storagev1.CSIDriverSpec{NodeAllocatableUpdatePeriodSeconds: period}},
		)
		nodes, ended := csinode.New(client, "n", slog.New(slog.DiscardHandler)), make(chan struct{}, 3)
		m, err := New(ctx, Config{NodeName: "n", Client: client, Dirs: podconfig.Dirs{Root: dir}, Nodes: nodes, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		a := &asking{client, &limited{}, m}
		d := &driver{name: "d", node: a.driver}
		m.drivers.byName["d"] = d
		for _, run := range []func(context.Context){nodes.Run, m.Run, func(ctx context.Context) { m.keepLimit(ctx, d) }} {
			go func() { run(ctx); ended <- struct{}{} }()
		}
		synctest.Wait()
		body(t, a)
		delete(m.drivers.byName, "d") // it has no connection that could be closed
		cancel()
		for range 3 {
			<-ended
		}
	})
}

func TestADriverIsAskedAgainForItsLimit(t *testing.T) {
	inBubble(t, new(int64(30)), func(t *testing.T, a *asking) {
		time.Sleep(29 * time.Second)
		if got := a.limit(t); got != 0 {
			t.Errorf("before its time: %d", got)
		}
		time.Sleep(time.Second)
		if got := a.limit(t); got != 1 {
			t.Errorf("after 30 s: %d", got)
		}
		time.Sleep(15 * time.Second)
		a.every(t, new(int64(20))) // 15 of them are over
		time.Sleep(5 * time.Second)
		if got := a.limit(t); got != 2 {
			t.Errorf("with a shorter period: %d", got)
		}
		a.every(t, nil)
		time.Sleep(time.Hour)
		if got := a.driver.asked.Load(); got != 2 {
			t.Errorf("asked %d times", got)
		}
	})
}

// TestADriverThatIsGoneIsNotToldOf: it may go while it is asked.
func TestADriverThatIsGoneIsNotToldOf(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, a *asking) {
		former := &driver{name: "d", node: a.driver}
		a.m.askLimit(t.Context(), former)
		if got := a.limit(t); got != 0 || a.driver.asked.Load() != 1 {
			t.Errorf("%d after %d questions", got, a.driver.asked.Load())
		}
	})
}

func TestANodeThatIsFull(t *testing.T) {
	full := attachError(&storagev1.VolumeError{Message: "no slot", ErrorCode: new(int32(codes.ResourceExhausted))})
	other := attachError(&storagev1.VolumeError{Message: "no disk", ErrorCode: new(int32(codes.NotFound))})
	of := &task{Volume: Volume{Name: "v"}, id: id{driver: "d"}}
	inBubble(t, new(int64(3600)), func(t *testing.T, a *asking) {
		err := a.m.notAttached(t.Context(), of, fmt.Errorf("late: %w", full))
		why, ok := errors.AsType[*LimitError](err)
		const want = `Node has reached its volume attachment limit, rejecting pod. MountVolume.WaitForAttach failed for volume "v" : late: no slot`
		if !ok || why.Reason() != "VolumeAttachmentLimitExceeded" || err.Error() != want {
			t.Errorf("%v", err)
		}
		if got := a.limit(t); got != 1 {
			t.Errorf("the driver was not asked at once: %d", got)
		}
		if _, ok := errors.AsType[*LimitError](a.m.notAttached(t.Context(), of, other)); ok {
			t.Error("another error is taken for a limit")
		}
	})
	inBubble(t, nil, func(t *testing.T, a *asking) {
		if _, ok := errors.AsType[*LimitError](a.m.notAttached(t.Context(), of, full)); ok || a.driver.asked.Load() != 0 {
			t.Error("a driver that does not want it is asked")
		}
	})
}
