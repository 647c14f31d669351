package pods

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
)

// killContainers stops them together, sidecars after the others, one after
// another in reverse order; all share one grace period.
func (w *worker) killContainers(ctx context.Context, v view, list []victim) {
	began := time.Now()
	var main sync.WaitGroup
	var sidecars []victim
	for _, c := range list {
		if c.sidecar {
			sidecars = append(sidecars, c)
			continue
		}
		main.Go(func() { w.killContainer(ctx, v, c, began) })
	}
	main.Wait()
	for _, c := range v.containers() { // spec order; the last one first
		for _, s := range sidecars {
			if s.container.ContainerName() == c.Name {
				defer w.killContainer(ctx, v, s, began)
			}
		}
	}
}

// killContainer runs the hook and stops the container within the grace period
// that began at began; the hook's time counts.
func (w *worker) killContainer(ctx context.Context, v view, c victim, began time.Time) {
	if ctx.Err() != nil {
		return
	}
	name := c.container.ContainerName()
	w.m.Events.Event(events.Container(v.pod, name), corev1.EventTypeNormal, events.Killing, c.message)
	if c.abrupt {
		w.stoppedWithAll(c.container.Id)
	} else {
		w.preStop(ctx, v, c)
	}
	left := max(graceMinSeconds, c.grace-int64(time.Since(began)/time.Second))
	if err := w.m.Runtime.StopContainer(ctx, c.container.Id, left); err != nil {
		w.cannotEnd(ctx, v, "cannot stop a container yet", err, "container", describe(c.container))
	}
}

// cannotEnd says why, and waits until it is time to look and plan again, longer each time: what is in the way may be there for long.
func (w *worker) cannotEnd(ctx context.Context, v view, what string, err error, about ...any) {
	if ctx.Err() != nil {
		return
	}
	w.logger.Warn(what, append(about, "err", err)...)
	w.m.Events.Eventf(events.Pod(v.pod), corev1.EventTypeWarning, events.FailedKillPod, "error killing pod: %v", err)
	w.mu.Lock()
	pause := retryDelay(w.notes.podRetries)
	w.notes.podRetries++
	w.mu.Unlock()
	wait.For(ctx, pause)
}

// stopSandboxes releases the pod's network.
func (w *worker) stopSandboxes(ctx context.Context, v view) {
	for _, s := range v.runtime.Sandboxes {
		if s.State != 0 {
			continue
		}
		if err := w.m.Runtime.StopPodSandbox(ctx, s.Id); err != nil {
			w.cannotEnd(ctx, v, "cannot stop a sandbox yet", err, "sandbox", s.Id)
		}
	}
}

// remove gets the final status accepted, takes everything off the node, and
// only then lets the API forget the pod.
func (w *worker) remove(ctx context.Context, v view) {
	if !v.gone {
		if err := w.m.Status.Flush(ctx, w.uid); err != nil {
			return
		}
	}
	if err := w.clean(ctx, v); err != nil {
		w.cannotEnd(ctx, v, "cannot remove the pod yet", err)
		return
	}
	if !v.gone {
		if err := w.m.confirm(ctx, v.pod); err != nil {
			if ctx.Err() == nil {
				w.logger.Warn("cannot confirm the deletion yet", "err", err)
				wait.For(ctx, lookRetry)
			}
			return
		}
	}
	w.m.Images.Forget(v.pod)
	w.mu.Lock()
	w.removed = true
	w.mu.Unlock()
}

// clean removes containers, sandboxes, logs and volumes. The pod's folder goes last: by it the next agent finds what is left.
func (w *worker) clean(ctx context.Context, v view) error {
	if err := w.removeFromRuntime(ctx, v); err != nil {
		return err
	}
	if err := w.m.Dirs.RemoveLogs(w.uid); err != nil {
		return err
	}
	if err := w.m.Volumes.Unmount(ctx, v.pod); err != nil {
		return err
	}
	w.m.Users.Free(w.uid)
	return nil
}

func (w *worker) removeFromRuntime(ctx context.Context, v view) error {
	for _, c := range v.runtime.Containers {
		if err := w.m.Runtime.RemoveContainer(ctx, c.Id); err != nil {
			return err
		}
	}
	for _, s := range v.runtime.Sandboxes {
		if err := w.m.Runtime.RemovePodSandbox(ctx, s.Id); err != nil {
			return err
		}
	}
	return nil
}
