package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// machine has pods that take their time, and a logind.
type machine struct {
	mu      sync.Mutex
	began   time.Time
	log     []string // what happened, and in which second
	pods    []*corev1.Pod
	ends    map[types.UID]time.Time
	takes   map[types.UID]time.Duration
	delay   time.Duration
	signals chan bool
	away    bool
}

func (m *machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, fmt.Sprintf("%d ", int(time.Since(m.began).Seconds()))+fmt.Sprintf(format, args...))
}

func (m *machine) Active() []*corev1.Pod { return m.pods }

func (m *machine) Fail(uid types.UID, why status.Rejection) bool {
	m.note("%s: %s within %d", uid, why.Reason, *why.GraceSeconds)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[uid] = time.Now().Add(m.takes[uid])
	return true
}

func (m *machine) Live(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	end, told := m.ends[uid]
	return !told || time.Now().Before(end)
}

func (m *machine) Told(uid types.UID) bool { return !m.Live(uid) }

func (m *machine) Delay() (time.Duration, error) { return m.delay, nil }
func (m *machine) SetDelay(d time.Duration) error {
	m.note("delay %v", d)
	m.delay = d
	return nil
}

func (m *machine) Inhibit() (io.Closer, error) {
	m.note("locked")
	return m, nil
}

func (m *machine) Watch() (<-chan bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.signals, nil
}
func (m *machine) Close() error {
	m.note("closed")
	return nil
}

func (m *machine) connect() (Logind, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errors.New("no such socket")
	}
	return m, nil
}

// following runs body beside Run.
func following(t *testing.T, m *machine, body func(state *State, events *record.FakeRecorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m.began, m.ends, m.signals = time.Now(), map[types.UID]time.Time{}, make(chan bool)
		m.pods = []*corev1.Pod{pod("critical", systemCritical, 30), pod("slow", 0, 600), pod("quick", 0, 3)}
		m.takes = map[types.UID]time.Duration{"critical": 2 * time.Second, "slow": time.Hour, "quick": time.Second}
		events, state := record.NewFakeRecorder(10), &State{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			New(Config{
				NodeName: "n1", Periods: Split(30*time.Second, 10*time.Second), Pods: m, State: state, Events: events, Changed: func() {},
				Connect: m.connect, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			}).Run(ctx)
		}()
		synctest.Wait()
		body(state, events)
		cancel()
		<-done
	})
}

func (m *machine) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.log, want) {
		t.Errorf("\n got %q\nwant %q", m.log, want)
	}
	m.log = nil
}

func TestTheMachineWaitsForItsPods(t *testing.T) {
	m := &machine{delay: 5 * time.Second}
	following(t, m, func(state *State, events *record.FakeRecorder) {
		time.Sleep(delayFirst) // until logind waits longer
		m.expect(t, "0 delay 30s", "0 locked")
		m.signals <- true
		synctest.Wait()
		if !state.Now() {
			t.Error("it is not shutting down")
		}
		if got := <-events.Events; got != "Normal NodeShutdown Shutdown manager detected shutdown event" {
			t.Error(got)
		}
		time.Sleep(time.Minute)
		// The slow one has all of its group's 20 seconds; nobody tells the API of it, so that is waited for too.
		m.expect(t, "0 slow: Terminated within 20", "0 quick: Terminated within 3", "20 critical: Terminated within 10", "27 closed")
		m.signals <- false
		m.expect(t, "60 locked", "60 closed")
		if state.Now() {
			t.Error("it is still shutting down")
		}
		if got := <-events.Events; got != "Normal NodeShutdown Shutdown manager detected shutdown cancellation" {
			t.Error(got)
		}
	})
}

func TestAMachineWithoutLogindIsAskedAgain(t *testing.T) {
	m := &machine{away: true, delay: time.Hour}
	following(t, m, func(*State, *record.FakeRecorder) {
		m.expect(t)
		m.mu.Lock()
		m.away = false
		m.mu.Unlock()
		time.Sleep(retry)
		m.expect(t, "10 locked")
		close(m.signals)
		synctest.Wait()
		m.mu.Lock()
		m.signals = make(chan bool)
		m.mu.Unlock()
		m.expect(t, "10 closed", "10 closed")
		time.Sleep(retry)
		m.expect(t, "20 locked")
	})
}

func TestWithoutPeriodsNothingIsHeld(t *testing.T) {
	New(Config{}).Run(t.Context())
}
