package eviction

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// machine has 1000 of memory and of the disk, of which its pods and what nobody needs take some.
type machine struct {
	node
	memory, disk, garbage int64
	conditions            Conditions
	changed               int
}

func (m *machine) observe(context.Context) (Observations, Layout, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Observations{MemoryAvailable: {1000, m.memory}, NodeFsAvailable: {1000, m.disk}}, Layout{}, nil
}

func (m *machine) live(context.Context) (map[types.UID]Live, error) {
	return map[types.UID]Live{"small": {MemoryBytes: 10}, "large": {MemoryBytes: 20}}, nil
}

func (m *machine) reclaim(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk += m.garbage
	m.garbage = 0
	return errors.New("one image is in use")
}

func (m *machine) changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

func (m *machine) free() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk
}

func (m *machine) change(f func()) {
	m.mu.Lock()
	f()
	m.mu.Unlock()
}

// evicting runs body beside Run, on a node with two pods.
func evicting(t *testing.T, p Policy, body func(m *machine, events *record.FakeRecorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{memory: 1000, disk: 1000}
		m.evicted, m.use = map[types.UID]status.Rejection{}, map[types.UID]Usage{}
		m.add("small", requesting("small", 0, "", ""))
		m.add("large", requesting("large", 0, "", ""))
		m.add("critical", requesting("critical", systemCritical, "", ""))
		for _, uid := range []types.UID{"small", "large", "critical"} {
			m.set(uid, 5)
		}
		recorder := record.NewFakeRecorder(100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Run(ctx, Config{
				NodeName: "n1", Policy: p, Pods: &m.node, Observe: m.observe, Measure: m.measure, Live: m.live, Reclaim: m.reclaim,
				Conditions: &m.conditions, Changed: func() { m.change(func() { m.changed++ }) }, Events: recorder,
				Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
		}()
		synctest.Wait()
		body(m, recorder)
		cancel()
		<-done
	})
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestOnePodAtATimeIsEvictedForMemory(t *testing.T) {
	evicting(t, policy(t), func(m *machine, events *record.FakeRecorder) {
		if len(m.gone()) != 0 || m.changes() != 0 {
			t.Fatalf("evicted %v", m.gone())
		}
		m.change(func() { m.memory = 99 })
		after(every)
		why, ok := m.gone()["large"]
		if len(m.gone()) != 1 || !ok || m.changes() != 1 {
			t.Fatalf("evicted %v", m.gone())
		}
		const message = "The node was low on resource: memory. Threshold quantity: 100, available: 99. "
		if why.Reason != "Evicted" || why.Message != message || *why.GraceSeconds != graceAtOnce || !why.Disrupted {
			t.Errorf("%+v", why)
		}
		if got := <-events.Events; got != "Warning EvictionThresholdMet Attempting to reclaim memory" {
			t.Errorf("event %q", got)
		}
		if now := m.conditions.Now(); text(now) != "[MemoryPressure]" {
			t.Errorf("conditions %v", now)
		}
		after(cleanupPoll) // what it held is free: the next look follows at once
		if len(m.gone()) != 2 {
			t.Errorf("evicted %v", m.gone())
		}
		after(time.Minute)
		if len(m.gone()) != 2 {
			t.Errorf("a critical pod went: %v", m.gone())
		}
		m.change(func() { m.memory = 1000 })
		after(5*time.Minute + every)
		if now := m.conditions.Now(); len(now) != 0 || m.changes() != 2 {
			t.Errorf("conditions %v, changed %d times", now, m.changes())
		}
	})
}

// TestDisksAreFreedOfGarbageFirst, and pods go only if that was not enough.
func TestDisksAreFreedOfGarbageFirst(t *testing.T) {
	evicting(t, policy(t), func(m *machine, _ *record.FakeRecorder) {
		m.change(func() { m.disk, m.garbage = 90, 100 })
		after(every)
		if len(m.gone()) != 0 || m.free() != 190 {
			t.Fatalf("evicted %v, disk %d", m.gone(), m.free())
		}
		m.change(func() { m.disk, m.garbage = 90, 10 })
		after(every)
		if len(m.gone()) != 1 {
			t.Errorf("evicted %v", m.gone())
		}
	})
}

func TestASoftThresholdGivesTime(t *testing.T) {
	evicting(t, policy(t), func(m *machine, _ *record.FakeRecorder) {
		short := int64(7)
		m.pods[1].Spec.TerminationGracePeriodSeconds = &short
		m.change(func() { m.memory = 150 })
		after(time.Minute)
		if len(m.gone()) != 0 {
			t.Fatalf("evicted %v before the grace period was over", m.gone())
		}
		after(every + cleanupPoll)
		if *m.gone()["large"].GraceSeconds != 7 || *m.gone()["small"].GraceSeconds != 20 {
			t.Errorf("evicted %+v", m.gone())
		}
	})
}

// TestWithoutThresholdsNobodyLooksAtTheMachine, which would fail here.
func TestWithoutThresholdsNobodyLooksAtTheMachine(t *testing.T) {
	evicting(t, Policy{}, func(m *machine, _ *record.FakeRecorder) {
		m.change(func() { m.memory, m.disk = 0, 0 })
		after(time.Hour)
		if len(m.gone()) != 0 || len(m.conditions.Now()) != 0 {
			t.Errorf("evicted %v", m.gone())
		}
	})
}
