package pods

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/events"
	"github.com/setpoint-io/setpoint/agent/status"
	"github.com/setpoint-io/setpoint/agent/wait"
)

// Active lists the pods that may still run something: neither finished nor deleted, rejected or evicted.
func (m *Manager) Active() []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*corev1.Pod
	for _, w := range m.workers {
		if pod, gone := w.latest(); !gone && pod.DeletionTimestamp == nil && !finished(pod) && !w.isRejected() {
			out = append(out, pod)
		}
	}
	return out
}

// Evict fails an active pod and reports whether there was one. It does not wait: the pod's worker stops the containers
// within the grace period of why, and the phase becomes Failed when none of them runs.
func (m *Manager) Evict(uid types.UID, why status.Rejection) bool {
	m.mu.Lock()
	w := m.workers[uid]
	m.mu.Unlock()
	if w == nil {
		return false
	}
	pod, gone := w.latest()
	if gone || pod.DeletionTimestamp != nil || finished(pod) || !w.reject(&why) {
		return false
	}
	m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, why.Reason, why.Message)
	w.poke()
	return true
}

// Ending reports whether an evicted pod still takes room: its containers or their files are there.
func (m *Manager) Ending(uid types.UID) bool {
	m.mu.Lock()
	w := m.workers[uid]
	m.mu.Unlock()
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.swept && !w.removed
}

// evicted: the API knows that the pod was evicted, so its last status needs nothing of the runtime any more.
func (v view) evicted() bool { return finished(v.pod) && v.pod.Status.Reason == events.Evicted }

// sweep removes the files of an evicted pod, which may not be deleted for long: its volumes first, since a look that finds
// no container takes the pod for swept.
func (w *worker) sweep(ctx context.Context, v view) {
	if err := w.sweepAll(ctx, v); err != nil && ctx.Err() == nil {
		w.logger.Warn("cannot remove the files of an evicted pod yet", "err", err)
		wait.For(ctx, lookRetry)
	}
}

func (w *worker) sweepAll(ctx context.Context, v view) error {
	if err := w.m.Volumes.Unmount(w.uid); err != nil {
		return err
	}
	if err := os.RemoveAll(w.m.Dirs.PodLogs(v.pod)); err != nil {
		return err
	}
	return w.removeFromRuntime(ctx, v)
}

// noteSwept remembers that nothing of an evicted pod is left.
func (w *worker) noteSwept(v view) {
	if v.evicted() && v.runtime.Empty() {
		w.mu.Lock()
		w.swept = true
		w.mu.Unlock()
	}
}
