package pods

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

const (
	// relistFast is the poll of runtimes without events, relistSlow the safety
	// net beside events.
	relistFast = time.Second
	relistSlow = 10 * time.Second
	// eventsRetry is the pause before a broken event stream is opened again.
	eventsRetry = time.Second
	// eventsQueueLimit bounds events not yet looked at; the runtime waits or
	// drops beyond it, and the relist finds what was dropped.
	eventsQueueLimit = 1000
)

// followEvents wakes the worker of each event's pod. A runtime without events
// is left to relist.
func (m *Manager) followEvents(ctx context.Context) {
	queue := make(chan *runtimeapi.ContainerEventResponse, eventsQueueLimit)
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		defer m.following.Store(false)
		m.following.Store(true)
		for {
			select {
			case <-ctx.Done():
				return
			case <-m.turn:
			case e := <-queue:
				m.Look(podOf(e))
			}
		}
	}()
	defer func() { <-done }()
	for {
		err := m.Runtime.GetContainerEvents(ctx, queue, nil)
		if grpcstatus.Code(err) == codes.Unimplemented {
			m.Logger.Info("the runtime has no events; looking every second")
			return
		}
		if !wait.For(ctx, eventsRetry) {
			return
		}
	}
}

func podOf(e *runtimeapi.ContainerEventResponse) types.UID {
	if uid := e.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		return types.UID(uid)
	}
	for _, c := range e.GetContainersStatuses() {
		if uid := c.Labels[observed.LabelPodUID]; uid != "" {
			return types.UID(uid)
		}
	}
	return ""
}

// relist wakes the worker of every pod whose sandboxes or containers changed
// state since the last look.
func (m *Manager) relist(ctx context.Context) {
	period := relistSlow
	if !m.hasEvents(ctx) {
		period = relistFast
	}
	last := map[string]item{}
	for wait.For(ctx, period) {
		now, err := m.items(ctx)
		if err != nil {
			m.Logger.Warn("cannot list containers", "err", err)
			continue
		}
		for uid := range changed(last, now) {
			m.Look(uid)
		}
		last = now
	}
}

// hasEvents opens and closes the stream once.
func (m *Manager) hasEvents(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, eventsProbe)
	defer cancel()
	err := m.Runtime.GetContainerEvents(ctx, make(chan *runtimeapi.ContainerEventResponse, eventsQueueLimit), nil)
	return grpcstatus.Code(err) != codes.Unimplemented
}

// eventsProbe is how long to wait for a runtime to refuse its event stream.
const eventsProbe = 100 * time.Millisecond

// item is one sandbox or container as a list shows it.
type item struct {
	pod   types.UID
	state int32
}

func (m *Manager) items(ctx context.Context) (map[string]item, error) {
	sandboxes, err := m.Runtime.ListPodSandbox(ctx, nil)
	if err != nil {
		return nil, err
	}
	containers, err := m.Runtime.ListContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]item{}
	for _, s := range sandboxes {
		out[s.Id] = item{types.UID(s.Labels[observed.LabelPodUID]), int32(s.State)}
	}
	for _, c := range containers {
		out[c.Id] = item{types.UID(c.Labels[observed.LabelPodUID]), int32(c.State)}
	}
	return out, nil
}

func changed(last, now map[string]item) map[types.UID]bool {
	out := map[types.UID]bool{}
	for id, i := range now {
		if last[id] != i {
			out[i.pod] = true
		}
	}
	for id, i := range last {
		if _, ok := now[id]; !ok {
			out[i.pod] = true
		}
	}
	return out
}
