package recording

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// answers takes, or answers with an error.
type answers struct{ err error }

func (s answers) Create(e *corev1.Event) (*corev1.Event, error)          { return e, s.err }
func (s answers) Update(e *corev1.Event) (*corev1.Event, error)          { return e, s.err }
func (s answers) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { return e, s.err }

// TestNoEventIsLostWithoutACount: each that was made is sent or counted.
func TestNoEventIsLostWithoutACount(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		err  error
		kind runtime.Object
		hold int64 // how many wait already
		want numbers.EventReport
	}{
		"taken":     {nil, &corev1.Pod{}, 0, numbers.EventReport{Made: 30, Sent: 25, Limited: 5}},
		"refused":   {apierrors.NewBadRequest("no"), &corev1.Pod{}, 0, numbers.EventReport{Made: 30, Refused: 25, Limited: 5}},
		"no answer": {errors.New("gone"), &corev1.Pod{}, 0, numbers.EventReport{Made: 30, Refused: 25, Limited: 5}},
		"no kind":   {nil, &metav1.PartialObjectMetadata{}, 0, numbers.EventReport{Made: 30, Refused: 30}},
		"no room":   {nil, &corev1.Pod{}, eventsMax, numbers.EventReport{Made: 30, Dropped: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sender{
				ctx: ended, sink: answers{c.err}, correlator: record.NewEventCorrelator(clock.RealClock{}), clock: clock.RealClock{},
				counts: &numbers.Events{}, log: slog.New(slog.DiscardHandler),
			}
			s.waiting.Store(c.hold)
			r := counted{&record.FakeRecorder{}, s}
			for n := range 30 {
				before := s.waiting.Load()
				r.Event(c.kind, corev1.EventTypeNormal, "R", fmt.Sprint(n))
				if s.waiting.Load() > before { // it was taken
					s.send(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n)}, Reason: fmt.Sprint("R", n), Count: 1})
				}
			}
			if got := s.counts.Report(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if waiting := s.waiting.Load(); waiting != c.hold {
				t.Errorf("%d wait at the end", waiting)
			}
		})
	}
}
