package eventttl

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func TestPlan(t *testing.T) {
	created := metav1.ObjectMeta{Name: "e", CreationTimestamp: ago(2 * time.Hour)}
	for name, c := range map[string]struct {
		event corev1.Event
		due   bool
	}{
		"created long ago, no other time":    {corev1.Event{ObjectMeta: created}, true},
		"created lately":                     {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(59 * time.Minute)}}, false},
		"last seen an hour ago":              {corev1.Event{ObjectMeta: created, LastTimestamp: ago(time.Hour)}, true},
		"last seen lately":                   {corev1.Event{ObjectMeta: created, LastTimestamp: ago(time.Minute)}, false},
		"event time lately":                  {corev1.Event{ObjectMeta: created, EventTime: metav1.MicroTime(ago(time.Minute))}, false},
		"a series that was observed again":   {corev1.Event{ObjectMeta: created, EventTime: metav1.MicroTime(ago(2 * time.Hour)), Series: &corev1.EventSeries{LastObservedTime: metav1.MicroTime(ago(time.Minute))}}, false},
		"a series that has ended":            {corev1.Event{ObjectMeta: created, Series: &corev1.EventSeries{LastObservedTime: metav1.MicroTime(ago(time.Hour))}}, true},
		"last seen by a clock that is ahead": {corev1.Event{ObjectMeta: created, LastTimestamp: ago(-time.Minute)}, false},
		"last seen in a hundred years": {corev1.Event{
			ObjectMeta: created, FirstTimestamp: ago(-100 * 365 * 24 * time.Hour), LastTimestamp: ago(-100 * 365 * 24 * time.Hour),
			EventTime: metav1.MicroTime(ago(-lifetime)), Series: &corev1.EventSeries{LastObservedTime: metav1.MicroTime(ago(-100 * 365 * 24 * time.Hour))},
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			due, more := plan([]*corev1.Event{&c.event}, now)
			if (len(due) == 1) != c.due || more {
				t.Errorf("due %v, more %v", len(due) == 1, more)
			}
		})
	}
}

func TestPlanIsBoundedAndTakesTheOldest(t *testing.T) {
	var all []*corev1.Event
	for i := range batchLimit + 1 {
		all = append(all, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), CreationTimestamp: ago(2*time.Hour + time.Duration(i)*time.Second)}})
	}
	due, more := plan(all, now)
	if len(due) != batchLimit || !more || due[0].Name != fmt.Sprint(batchLimit) {
		t.Errorf("%d due, more %v, first %s", len(due), more, due[0].Name)
	}
}

func TestAnEventGoesAnHourAfterItWasLastSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		event := func(name string) *corev1.Event {
			return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, LastTimestamp: metav1.Now()}
		}
		reconciletest.Add(w, event("once"))
		reconciletest.Add(w, event("again"))
		w.Run(New())
		time.Sleep(lifetime - time.Minute)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Fatalf("written before the hour is over: %v", writes)
		}
		if _, err := w.Client.CoreV1().Events("ns").Update(t.Context(), event("again"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Writes()
		time.Sleep(3 * time.Minute)
		w.Settle()
		if diff := cmp.Diff([]string{"delete events ns/once"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		time.Sleep(lifetime)
		w.Settle()
		if diff := cmp.Diff([]string{"delete events ns/again"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
	})
}
