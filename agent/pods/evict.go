package pods

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/pods/status"
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
	pod := m.fail(uid, why)
	if pod == nil {
		return false
	}
	m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, why.Reason, why.Message)
	return true
}

// Fail is Evict without an event.
func (m *Manager) Fail(uid types.UID, why status.Rejection) bool { return m.fail(uid, why) != nil }

// fail returns the pod, or nil if there is none that could fail.
func (m *Manager) fail(uid types.UID, why status.Rejection) *corev1.Pod {
	w := m.worker(uid)
	if w == nil {
		return nil
	}
	pod, gone := w.latest()
	if gone || pod.DeletionTimestamp != nil || finished(pod) || !w.reject(&why) {
		return nil
	}
	w.poke()
	return pod
}

func (m *Manager) worker(uid types.UID) *worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.workers[uid]
}

// Live reports whether a container of the pod ran when it was looked at last.
func (m *Manager) Live(uid types.UID) bool {
	w := m.worker(uid)
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live
}

// Told reports whether the API knows that the pod has ended.
func (m *Manager) Told(uid types.UID) bool {
	w := m.worker(uid)
	if w == nil {
		return true
	}
	pod, _ := w.latest()
	return finished(pod)
}

// Ending reports whether an evicted pod still takes room: its containers or their files are there.
func (m *Manager) Ending(uid types.UID) bool {
	w := m.worker(uid)
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.swept && !w.removed
}

const (
	// sweepTimeout is how long RemoveFinished waits.
	sweepTimeout = 10 * time.Second
	sweepPoll    = 100 * time.Millisecond
)

// RemoveFinished takes everything off the node of pods that have succeeded or failed; their objects stay. It returns when that
// is done, or when it takes too long.
func (m *Manager) RemoveFinished(ctx context.Context) {
	m.mu.Lock()
	var asked []types.UID
	for uid, w := range m.workers {
		if pod, gone := w.latest(); !gone && pod.DeletionTimestamp == nil && finished(pod) && w.unwant() {
			asked = append(asked, uid)
		}
	}
	m.mu.Unlock()
	for began := time.Now(); slices.ContainsFunc(asked, m.Ending) && time.Since(began) < sweepTimeout; {
		if !wait.For(ctx, sweepPoll) {
			return
		}
	}
}

// unwant asks for a sweep and reports whether there is anything to do.
func (w *worker) unwant() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.swept || w.removed {
		return false
	}
	w.unwanted = true
	w.poke()
	return true
}

// disposable: the API knows how the pod has ended, so its status needs nothing of the runtime any more, and nobody wants to
// read its logs: it was evicted, or the node needs the room.
func (v view) disposable() bool {
	return finished(v.pod) && (v.pod.Status.Reason == events.Evicted || v.unwanted)
}

// sweep removes the files of a disposable pod, which may not be deleted for long: its volumes first, since a look that finds
// no container takes the pod for swept.
func (w *worker) sweep(ctx context.Context, v view) {
	if err := w.sweepAll(ctx, v); err != nil && ctx.Err() == nil {
		w.logger.Warn("cannot remove the files of a pod yet", "err", err)
		wait.For(ctx, lookRetry)
	}
}

func (w *worker) sweepAll(ctx context.Context, v view) error {
	if err := w.m.Volumes.Unmount(ctx, v.pod); err != nil {
		return err
	}
	if err := w.m.Dirs.RemoveLogs(w.uid); err != nil {
		return err
	}
	if err := w.removeFromRuntime(ctx, v); err != nil {
		return err
	}
	w.m.Users.Free(w.uid)
	return nil
}

// noteSwept remembers that nothing of a disposable pod is left.
func (w *worker) noteSwept(v view) {
	if v.disposable() && v.runtime.Empty() {
		w.mu.Lock()
		w.swept = true
		w.mu.Unlock()
	}
}
