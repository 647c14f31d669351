package recording

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/internal/clip"
)

const (
	// eventsMax is how many events wait to be sent; of more, the new ones are dropped and counted. It is less than what the broadcaster
	// keeps, which drops without a word.
	eventsMax = 900
	// messageBytesMax is how much of a message is sent, and kept to find those alike: errors in it may repeat a whole object. With the
	// mark it is within the 1,024 bytes of events.k8s.io.
	messageBytesMax = 1000
	// eventTries is how often an event is sent that no answer came for, eventRetryInterval the pause between.
	eventTries         = 12
	eventRetryInterval = 10 * time.Second
)

// Events are those of a term of leadership.
type Events struct {
	broadcaster record.EventBroadcaster
	sender      *sender
}

// Start begins to send events, dated by the clock, with the client until ctx, that of the term, ends, and to count them.
func Start(ctx context.Context, client kubernetes.Interface, clock clock.PassiveClock, counts *numbers.Events, log *slog.Logger) *Events {
	e := &Events{record.NewBroadcaster(record.WithContext(ctx)), &sender{
		ctx: ctx, sink: sink{ctx, client}, correlator: record.NewEventCorrelator(clock), clock: clock, counts: counts, log: log,
	}}
	e.broadcaster.StartEventWatcher(e.sender.send)
	return e
}

// Recorder is that of one component, for as long as Stop is not called. It is safe for concurrent use and does not wait.
func (e *Events) Recorder(component string) record.EventRecorder {
	return counted{e.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}), e.sender}
}

// Stop returns when the events that wait are sent, or given up because the term has ended.
func (e *Events) Stop() { e.broadcaster.Shutdown() }

// sender sends the events of all recorders. Each that was made is sent or counted as lost.
type sender struct {
	ctx        context.Context // of the term: record.EventBroadcaster passes none
	sink       record.EventSink
	correlator *record.EventCorrelator
	clock      clock.PassiveClock
	counts     *numbers.Events
	log        *slog.Logger
	waiting    atomic.Int64
}

// send is called for one event after the other.
func (s *sender) send(event *corev1.Event) {
	defer s.waiting.Add(-1)
	made := *event                                      // the correlator changes it
	made.FirstTimestamp = metav1.NewTime(s.clock.Now()) // client-go's recorders go by the process's time
	made.LastTimestamp = made.FirstTimestamp
	made.Message = clip.Text(made.Message, messageBytesMax)
	result, err := s.correlator.EventCorrelate(&made)
	if err != nil {
		s.refused(event, err)
		return
	}
	if result.Skip {
		s.counts.Limited.Add(1)
		return
	}
	for try := 1; ; try++ {
		err = s.write(result)
		if err == nil {
			s.counts.Sent.Add(1)
			return
		}
		if answered := new(apierrors.StatusError); errors.As(err, &answered) || try == eventTries || !s.rest() {
			s.refused(event, err)
			return
		}
	}
}

// write makes a new event or counts up the one that says the same.
func (s *sender) write(result *record.EventCorrelateResult) (err error) {
	var stored *corev1.Event
	if result.Event.Count > 1 {
		stored, err = s.sink.Patch(result.Event, result.Patch)
	}
	if result.Event.Count <= 1 || apierrors.IsNotFound(err) {
		result.Event.ResourceVersion = ""
		stored, err = s.sink.Create(result.Event)
	}
	if err == nil {
		s.correlator.UpdateState(stored)
	}
	return err
}

func (s *sender) rest() (goesOn bool) {
	timer := time.NewTimer(eventRetryInterval)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (s *sender) refused(event *corev1.Event, err error) {
	s.counts.Refused.Add(1)
	s.log.Debug("event not recorded", "reason", event.Reason, "about", event.InvolvedObject.Name, "err", err)
}

// sink writes events within the term: client-go's own does not know when that ends.
type sink struct {
	ctx    context.Context // record.EventSink passes none
	client kubernetes.Interface
}

// Create implements record.EventSink.
func (s sink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).Create(s.ctx, event, metav1.CreateOptions{})
}

// Update implements record.EventSink.
func (s sink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).Update(s.ctx, event, metav1.UpdateOptions{})
}

// Patch implements record.EventSink.
func (s sink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).Patch(s.ctx, event.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
}

// counted is a recorder of one component that hands over to the sender.
type counted struct {
	record.EventRecorder
	sender *sender
}

// takes says whether there is room for an event about the object.
func (c counted) takes(object runtime.Object) bool {
	c.sender.counts.Made.Add(1)
	if _, err := reference.GetReference(scheme.Scheme, object); err != nil {
		c.sender.counts.Refused.Add(1)
		return false
	}
	if c.sender.waiting.Add(1) > eventsMax {
		c.sender.waiting.Add(-1)
		c.sender.counts.Dropped.Add(1)
		return false
	}
	return true
}

// Event implements record.EventRecorder.
func (c counted) Event(object runtime.Object, kind, reason, message string) {
	if c.takes(object) {
		c.EventRecorder.Event(object, kind, reason, message)
	}
}

// Eventf implements record.EventRecorder.
func (c counted) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	if c.takes(object) {
		c.EventRecorder.Eventf(object, kind, reason, format, args...)
	}
}

// AnnotatedEventf implements record.EventRecorder.
func (c counted) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	if c.takes(object) {
		c.EventRecorder.AnnotatedEventf(object, annotations, kind, reason, format, args...)
	}
}
