package pods

import (
	"context"
	"time"

	"github.com/setpoint-io/setpoint/agent/volumes"
)

// task is a step that runs beside its worker.
type task struct {
	kind   kind
	cancel context.CancelFunc
	done   chan struct{}
	// until is when a kill's grace period ends.
	until time.Time
}

// reap forgets a task that has ended. It runs before the worker looks: a look
// taken while the task was still at work may not be acted upon, or a container
// would be started twice.
func (w *worker) reap() {
	if w.task == nil {
		return
	}
	select {
	case <-w.task.done:
		w.task = nil
	default:
	}
}

// act takes the step unless one is under way that need not be cut short.
func (w *worker) act(ctx context.Context, v view, s step) {
	if w.task != nil && !w.cutShort(v, s) {
		return
	}
	switch s.kind {
	case create:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.createSandbox(ctx, v) })
	case start:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.startContainers(ctx, v, s.start) })
	case resize:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.resizePod(ctx, v, s.resize) })
	case kill:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.killContainers(ctx, v, s.kill) })
		w.task.until = v.now.Add(time.Duration(s.graceSeconds) * time.Second)
	case reset:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.resetContainers(ctx, v) })
	case stop:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.stopSandboxes(ctx, v) })
	case unprepare:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.unprepareClaims(ctx, v) })
	case sweep:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.sweep(ctx, v) })
	case remove:
		w.begin(ctx, s.kind, func(ctx context.Context) { w.remove(ctx, v) })
	case stay:
		if !s.ended && w.refreshDue(v) {
			w.begin(ctx, s.kind, func(ctx context.Context) { w.refresh(ctx, v) })
		}
	}
}

// cutShort ends a task that is in the way of taking the pod down, or whose
// grace period became shorter, and reports whether s may begin at once.
func (w *worker) cutShort(v view, s step) bool {
	ending := s.kind == kill || s.kind == stop || s.kind == remove
	switch w.task.kind {
	case create, start, resize, reset, stay:
		if !ending {
			return false
		}
		w.task.cancel()
		<-w.task.done // it may be creating what has to be killed
		w.task = nil
		w.poke() // the look this step is based on is outdated
		return false
	case kill:
		if s.kind == kill && v.now.Add(time.Duration(s.graceSeconds)*time.Second).Before(w.task.until) {
			w.task.cancel() // killing twice does no harm
			w.task = nil
			return true
		}
	}
	return false
}

// begin runs fn and wakes the worker after it.
func (w *worker) begin(ctx context.Context, k kind, fn func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{kind: k, cancel: cancel, done: make(chan struct{})}
	w.task = t
	w.tasks.Go(func() {
		defer w.poke()
		defer close(t.done)
		defer cancel()
		fn(ctx)
	})
}

// refreshDue: also when an earlier agent mounted the volumes of a pod that runs.
func (w *worker) refreshDue(v view) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return v.anyReadySandbox() && w.m.Volumes.Refreshes(v.pod) && (w.notes.stale || v.now.Sub(w.notes.refreshed) >= volumes.RefreshEvery)
}
