package embedded

import (
	"context"
	"errors"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// eventQueueMax is how many events a subscriber may lag behind; beyond it the subscription ends with
// ErrEventsLost and the subscriber must list again.
const eventQueueMax = 1024

// ErrEventsLost says that a subscriber of events was too slow.
var ErrEventsLost = errors.New("container events lost: list again")

// events fans lifecycle events out to subscribers.
type events struct {
	mu          sync.Mutex
	subscribers map[chan *runtimeapi.ContainerEventResponse]struct{}
	closed      bool
}

func newEvents() *events {
	return &events{subscribers: map[chan *runtimeapi.ContainerEventResponse]struct{}{}}
}

func (e *events) subscribe() chan *runtimeapi.ContainerEventResponse {
	queue := make(chan *runtimeapi.ContainerEventResponse, eventQueueMax)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		close(queue)
		return queue
	}
	e.subscribers[queue] = struct{}{}
	return queue
}

func (e *events) drop(queue chan *runtimeapi.ContainerEventResponse) {
	if _, ok := e.subscribers[queue]; ok {
		delete(e.subscribers, queue)
		close(queue)
	}
}

func (e *events) unsubscribe(queue chan *runtimeapi.ContainerEventResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(queue)
}

func (e *events) send(event *runtimeapi.ContainerEventResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for queue := range e.subscribers {
		select {
		case queue <- event:
		default:
			e.drop(queue)
		}
	}
}

func (e *events) wanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.subscribers) > 0
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for queue := range e.subscribers {
		e.drop(queue)
	}
}

// GetContainerEvents sends events to the channel until ctx ends, the runtime is closed or the receiver lags too far.
func (r *Runtime) GetContainerEvents(ctx context.Context, to chan *runtimeapi.ContainerEventResponse,
	connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	queue := r.events.subscribe()
	defer r.events.unsubscribe(queue)
	if connected != nil {
		connected(nil)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-queue:
			if !open {
				return r.whyEventsEnded()
			}
			select {
			case to <- event:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func (r *Runtime) whyEventsEnded() error {
	if r.ctx.Err() != nil {
		return ErrClosed
	}
	return ErrEventsLost
}

func (r *Runtime) announce(c *container, kind runtimeapi.ContainerEventType) {
	if r.events.wanted() {
		r.send(c.id, c.sandbox, kind)
	}
}

// announceSandbox uses the sandbox's id as container id, as other runtimes do.
func (r *Runtime) announceSandbox(s *sandbox, kind runtimeapi.ContainerEventType) {
	if r.events.wanted() {
		r.send(s.id, s, kind)
	}
}

func (r *Runtime) send(id string, s *sandbox, kind runtimeapi.ContainerEventType) {
	event := &runtimeapi.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(), PodSandboxStatus: s.status(),
	}
	for _, c := range r.containersOf(s.id) {
		event.ContainersStatuses = append(event.ContainersStatuses, r.statusOf(c))
	}
	r.events.send(event)
}
