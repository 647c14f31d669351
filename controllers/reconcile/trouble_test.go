package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// troubled runs a loop over the ConfigMap n/c for a while, and returns its report and the events on the object.
func troubled(t *testing.T, life time.Duration, do FuncOf[Key]) (numbers.Report, []string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(object), 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	events := record.NewFakeRecorder(100)
	env := &Env{
		Clock: clock.RealClock{}, Numbers: &numbers.Ledger{}, Events: events, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), name: "c",
	}
	done := make(chan error, 1)
	source := Source{Informer: informer, Map: func(_, after metav1.Object) []Key { return []Key{KeyOf(after)} }}
	go func() { done <- Run(ctx, Config{Name: "q", Reconcile: do, Sources: []Source{source}, Env: env}) }()
	time.Sleep(life)
	synctest.Wait()
	report := env.Numbers.Reports(time.Now())[0]
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	factory.Shutdown()
	close(events.Events)
	return report, slices.Collect(func(yield func(string) bool) {
		for event := range events.Events {
			if !yield(event) {
				return
			}
		}
	})
}

func TestAKeyThatKeepsFailingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, events := troubled(t, 30*time.Minute, func(context.Context, Key) (time.Duration, error) {
			return 0, errors.New("no way")
		})
		if len(events) != 1 || !strings.Contains(events[0], "Warning FailedSync c failed 10 times in a row: no way") {
			t.Errorf("events: %q", events)
		}
		if len(report.Failing) != 1 || report.Failing[0].Tries < 15 || report.Failing[0].Next == nil || !report.Failing[0].Next.After(time.Now()) {
			t.Errorf("failing: %+v", report.Failing)
		}
		if report.LastError == nil || report.LastError.Error != "no way" || report.Depth != 0 {
			t.Errorf("%+v", report)
		}
	})
}

func TestWritesInCirclesAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := 0
		report, events := troubled(t, 15*time.Minute, func(ctx context.Context, _ Key) (time.Duration, error) {
			passes++
			pass, _ := PassFrom(ctx)
			pass.Wrote("configmaps n/c", uint64(1+passes%2)) // there and back
			return time.Second, nil
		})
		// 22 in the first 22 seconds, then after 1, 3, 7 and 15 seconds more, and then one every 8 seconds.
		if want := 22 + 4 + (900-22-15)/8; passes < want-1 || passes > want+1 {
			t.Errorf("%d passes, want %d", passes, want)
		}
		if len(events) != 7 || // of the circles 1, 2, 4, 8, 16, 32 and 64
			!strings.HasPrefix(events[0], "Warning WritingInCircles c wrote configmaps n/c 20 times") {
			t.Errorf("events: %q", events)
		}
		if len(report.Circles) != 1 || report.Circles[0].Key != "n/c" || report.Circles[0].Circles != passes-21 {
			t.Errorf("circles: %+v", report.Circles)
		}
	})
}
