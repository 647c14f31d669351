package csi

import (
	"context"
	"errors"
	"sync"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// A driver says when it registers how many volumes its node can have. That may change: volumes are attached by others than the cluster,
// or network cards need the same places. So a driver is asked again as often as its CSIDriver says, and when the attacher found no place.

// signal wakes all who wait for the next change. Its zero value is not usable.
type signal struct {
	mu   sync.Mutex
	next chan struct{}
}

func newSignal() *signal { return &signal{next: make(chan struct{})} }

func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.next)
	s.next = make(chan struct{})
}

// objectsChange has the periods looked at again.
func (m *Manager) objectsChange() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { m.periods.fire() },
		UpdateFunc: func(old, now any) {
			if a, ok := old.(*storagev1.CSIDriver); !ok || periodOf(a) != periodOf(now.(*storagev1.CSIDriver)) {
				m.periods.fire()
			}
		},
		DeleteFunc: func(any) { m.periods.fire() },
	}
}

func periodOf(object *storagev1.CSIDriver) time.Duration {
	if object.Spec.NodeAllocatableUpdatePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*object.Spec.NodeAllocatableUpdatePeriodSeconds) * time.Second
}

// period is how often a driver is asked again; 0: never.
func (m *Manager) period(driver string) time.Duration {
	object, err := m.objects.Get(driver)
	if err != nil {
		return 0 // there is none
	}
	return periodOf(object)
}

// keepLimit asks the driver again and again, until it goes.
func (m *Manager) keepLimit(ctx context.Context, d *driver) {
	for asked := time.Now(); ; {
		changed, due := m.periods.wait(), (<-chan time.Time)(nil)
		if period := m.period(d.name); period > 0 {
			due = time.After(time.Until(asked.Add(period)))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-due:
			asked = time.Now()
			m.askLimit(ctx, d)
		}
	}
}

// askLimit writes what the driver says now into the CSINode, if it is still the one that is used.
func (m *Manager) askLimit(ctx context.Context, d *driver) {
	info, err := call(ctx, d.node.NodeGetInfo, &spec.NodeGetInfoRequest{})
	if err != nil {
		if ctx.Err() == nil {
			m.Logger.Warn("a CSI driver does not say how many volumes this node can have", "driver", d.name, "err", err)
		}
		return
	}
	m.drivers.mu.Lock()
	defer m.drivers.mu.Unlock()
	if m.drivers.byName[d.name] == d {
		m.Nodes.Set(entryOf(d.name, info))
	}
}

// reasonLimit is upstream's.
const reasonLimit = "VolumeAttachmentLimitExceeded"

// LimitError says that the node has no place for a volume, although the CSINode said so: the pod has to run elsewhere.
type LimitError struct{ Err error }

func (e *LimitError) Error() string {
	return "Node has reached its volume attachment limit, rejecting pod. " + e.Err.Error()
}

// Reason is why the pod is rejected.
func (e *LimitError) Reason() string { return reasonLimit }

// Unwrap gives the cause.
func (e *LimitError) Unwrap() error { return e.Err }

// exhausted is what an attacher says that found no place.
type exhausted struct{ message string }

func (e *exhausted) Error() string { return e.message }

func attachError(e *storagev1.VolumeError) error {
	if e.ErrorCode != nil && codes.Code(*e.ErrorCode) == codes.ResourceExhausted {
		return &exhausted{e.Message}
	}
	return errors.New(e.Message)
}

// notAttached is err, or, of a driver whose limit is kept up to date, that there was no place. Then the driver is asked for its limit at
// once, so that the next pod is not placed here too.
func (m *Manager) notAttached(ctx context.Context, t *task, err error) error {
	err = stepError("MountVolume.WaitForAttach", t.specName(), err)
	if _, full := errors.AsType[*exhausted](err); !full || m.period(t.id.driver) == 0 {
		return err
	}
	if d, missing := m.drivers.get(t.id.driver); missing == nil {
		m.askLimit(ctx, d)
	}
	return &LimitError{err}
}
