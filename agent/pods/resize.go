package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// resizeRetry is the pause after a resize that failed.
const resizeRetry = 10 * time.Second

// actuated is what the pod and its running containers have, as opposed to what they were allocated.
type actuated struct {
	known bool
	pod   *corev1.ResourceRequirements
	// containers by id.
	containers map[string]corev1.ResourceRequirements
	// restarted are containers that were stopped for a resize, by name: their ids. They start again whatever their
	// exit code, and without a back-off.
	restarted map[string]string
	// err is of the last try, which may be repeated at retryAt.
	err     string
	retryAt time.Time
	// inProgress: the end of a resize is still to be told.
	inProgress bool
}

func (a *actuated) clone() actuated {
	c := *a
	c.containers, c.restarted = maps.Clone(a.containers), maps.Clone(a.restarted)
	return c
}

// change is a running container that does not have what it was allocated.
type change struct {
	container *corev1.Container
	run       *observed.Container
	was       corev1.ResourceRequirements
	restart   bool
}

// recall learns what running containers have that this agent did not start: from the pod's status, or else from the
// runtime. One of which neither is known gets its resources set again.
func (w *worker) recall(pod *corev1.Pod, seen *observed.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := &w.notes.actuated
	if !has.known {
		has.known, has.pod = true, pod.Spec.Resources
		if pod.Status.Resources != nil && pod.Spec.Resources != nil {
			has.pod = restored(pod).pod
		}
		has.inProgress = slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodResizeInProgress
		})
	}
	running := map[string]corev1.ResourceRequirements{}
	for _, c := range resizable(pod) {
		run := view{runtime: seen}.inSandbox(c.Name)
		if run == nil || !run.Running() {
			continue
		}
		have, ok := has.containers[run.Id]
		if !ok {
			have = w.lookUp(pod, c, run)
		}
		running[run.Id] = have
	}
	has.containers = running
}

func (w *worker) lookUp(pod *corev1.Pod, c *corev1.Container, run *observed.Container) corev1.ResourceRequirements {
	s := containerStatus(pod, c.Name)
	if s != nil && s.Resources != nil && s.ContainerID == w.m.RuntimeName+"://"+run.Id {
		return *s.Resources
	}
	if reported := run.Resources.GetLinux(); reported == nil || podconfig.SameLimits(reported, w.linux(pod, c)) {
		return c.Resources
	}
	return corev1.ResourceRequirements{}
}

func (w *worker) linux(pod *corev1.Pod, c *corev1.Container) *runtimeapi.LinuxContainerResources {
	r := podconfig.Resources(pod, c, w.m.node())
	w.pin(c.Name, r)
	return r
}

// changes are the running containers that have something else than they were allocated.
func (v view) changes() []change {
	var out []change
	for _, c := range resizable(v.pod) {
		run := v.inSandbox(c.Name)
		if run == nil || !run.Running() {
			continue
		}
		if have, ok := v.actuated.containers[run.Id]; ok && !sameResources(&have, &c.Resources) {
			out = append(out, change{container: c, run: run, was: have, restart: needsRestart(c, &have)})
		}
	}
	return out
}

// needsRestart: a resource changes whose policy asks for it.
func needsRestart(c *corev1.Container, was *corev1.ResourceRequirements) bool {
	for _, p := range c.ResizePolicy {
		if p.RestartPolicy != corev1.RestartContainer {
			continue
		}
		for _, lists := range [][2]corev1.ResourceList{{was.Requests, c.Resources.Requests}, {was.Limits, c.Resources.Limits}} {
			before, after := lists[0][p.ResourceName], lists[1][p.ResourceName]
			if before.Cmp(after) != 0 {
				return true
			}
		}
	}
	return false
}

// resizing reports whether the pod has something else than it was allocated.
func (v view) resizing() bool {
	return len(v.changes()) > 0 || !equality.Semantic.DeepEqual(v.actuated.pod, v.pod.Spec.Resources)
}

// resize plans to give the pod what it was allocated, and reports whether that is the step.
func (v view) resize(s *step) bool {
	if !v.resizing() {
		return false
	}
	if left := v.actuated.retryAt.Sub(v.now); left > 0 {
		s.soon(left)
		return false
	}
	s.kind, s.resize = resize, v.changes()
	return true
}

// hadPod is the pod with what it has rather than what it was allocated.
func (v view) hadPod() *corev1.Pod {
	had := v.pod.DeepCopy()
	had.Spec.Resources = v.actuated.pod
	for _, c := range resizable(had) {
		if run := v.inSandbox(c.Name); run != nil {
			if have, ok := v.actuated.containers[run.Id]; ok {
				c.Resources = have
			}
		}
	}
	return had
}

// resizePod changes the pod's limits and those of its containers. What grows, grows from the outside to the inside,
// and what shrinks the other way, since no cgroup may have more than the one around it.
func (w *worker) resizePod(ctx context.Context, v view, changes []change) {
	err := w.tryResize(ctx, v, changes)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	has := &w.notes.actuated
	was := has.err
	has.err, has.retryAt, has.inProgress = "", time.Time{}, true
	if err != nil {
		has.err, has.retryAt = err.Error(), time.Now().Add(resizeRetry)
	}
	now := has.err
	w.mu.Unlock()
	if now != "" && now != was {
		w.m.Events.Event(events.Pod(v.pod), corev1.EventTypeWarning, events.ResizeError, resizeMessage("error", v.pod, now))
	}
}

func (w *worker) tryResize(ctx context.Context, v view, changes []change) error {
	node := w.m.node()
	before, after := podconfig.PodResources(v.hadPod(), node), podconfig.PodResources(v.pod, node)
	w.pinPod(before)
	w.pinPod(after)
	if err := w.checkUsage(ctx, v, changes, before, after); err != nil {
		return err
	}
	between := podconfig.Larger(before, after)
	if err := w.setPodLimits(ctx, v, before, between); err != nil {
		return err
	}
	var restarts []victim
	for _, c := range changes {
		if c.restart {
			restarts = append(restarts, w.restartFor(v, c))
			continue
		}
		err := w.m.Runtime.UpdateContainerResources(ctx, c.run.Id, &runtimeapi.ContainerResources{Linux: w.linux(v.pod, c.container)})
		if err != nil {
			return fmt.Errorf("container %s: %w", c.container.Name, err)
		}
		w.mu.Lock()
		w.notes.actuated.containers[c.run.Id] = c.container.Resources
		w.mu.Unlock()
	}
	w.killContainers(ctx, v, restarts)
	if err := w.setPodLimits(ctx, v, between, after); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.actuated.pod = v.pod.Spec.Resources
	return ctx.Err()
}

// restartFor notes that the container starts again: until then its status says so, or a pod whose containers may not
// restart after success would count as finished.
func (w *worker) restartFor(v view, c change) victim {
	name := c.container.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes.actuated.restarted == nil {
		w.notes.actuated.restarted = map[string]string{}
	}
	w.notes.actuated.restarted[name] = c.run.Id
	w.notes.waiting[name] = status.Waiting{Reason: reasonCreating, Restarts: true}
	return victim{
		container: c.run, grace: v.grace(), sidecar: v.isSidecar(name),
		message: fmt.Sprintf("Container %s resize requires restart", name),
	}
}

func (w *worker) setPodLimits(ctx context.Context, v view, from, to *runtimeapi.LinuxContainerResources) error {
	if podconfig.SameLimits(from, to) {
		return nil
	}
	_, err := w.m.Runtime.UpdatePodSandboxResources(ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{
		PodSandboxId: v.runtime.ReadySandbox().GetId(), Resources: to,
	})
	if err != nil && grpcstatus.Code(err) != codes.Unimplemented { // such a runtime has no limits of pods
		return fmt.Errorf("limits of the pod: %w", err)
	}
	return nil
}

// checkUsage refuses a memory limit below what is in use: the kernel would kill what it was meant to bound.
func (w *worker) checkUsage(ctx context.Context, v view, changes []change, before, after *runtimeapi.LinuxContainerResources) error {
	var errs []error
	for _, c := range changes {
		was, want := c.was.Limits.Memory().Value(), c.container.Resources.Limits.Memory().Value()
		if c.restart || want == 0 || was != 0 && want >= was {
			continue
		}
		stats, err := w.m.Runtime.ContainerStats(ctx, c.run.Id)
		if err != nil {
			return fmt.Errorf("memory usage of container %s: %w", c.container.Name, err)
		}
		if used := stats.GetMemory().GetUsageBytes().GetValue(); used >= uint64(want) {
			errs = append(errs, fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)",
				c.container.Name, want, used))
		}
	}
	if want := after.MemoryLimitInBytes; want != 0 && (before.MemoryLimitInBytes == 0 || want < before.MemoryLimitInBytes) {
		stats, err := w.m.Runtime.PodSandboxStats(ctx, v.runtime.ReadySandbox().GetId())
		if err != nil {
			return fmt.Errorf("memory usage of the pod: %w", err)
		}
		if used := stats.GetLinux().GetMemory().GetUsageBytes().GetValue(); used >= uint64(want) {
			errs = append(errs, fmt.Errorf("attempting to set pod memory limit (%d) below current usage (%d)", want, used))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("cannot decrease memory limits: %w", errors.Join(errs...))
}

// resizeStatus is what to tell of a resize; it tells of the end of one by an event, once.
func (w *worker) resizeStatus(v view) status.Resize {
	r := status.Resize{Pending: v.pending, Generation: v.generation, InProgress: v.resizing(), Error: v.actuated.err}
	r.Actuated = func(c *observed.Container) *corev1.ResourceRequirements {
		have, ok := v.actuated.containers[c.Id]
		if !ok {
			return nil
		}
		return have.DeepCopy()
	}
	if r.InProgress {
		r.ActuatedPod = v.hadPod()
		return r
	}
	w.mu.Lock()
	done := w.notes.actuated.inProgress
	w.notes.actuated.inProgress, w.notes.actuated.err = false, ""
	w.mu.Unlock()
	if done {
		w.m.Events.Event(events.Pod(v.pod), corev1.EventTypeNormal, events.ResizeCompleted, resizeMessage("completed", v.pod, ""))
	}
	return r
}

// startedWith notes what a container was started with.
func (w *worker) startedWith(id string, c *corev1.Container) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes.actuated.containers == nil {
		w.notes.actuated.containers = map[string]corev1.ResourceRequirements{}
	}
	w.notes.actuated.containers[id] = c.Resources
	delete(w.notes.actuated.restarted, c.Name)
}
