package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
	"github.com/setpoint-io/setpoint/agent/volumes"
)

// createSandbox prepares the volumes and runs the sandbox.
func (w *worker) createSandbox(ctx context.Context, v view) {
	attempt := uint32(0)
	if old := v.runtime.Sandbox(); old != nil {
		attempt = old.Metadata.GetAttempt() + 1
		w.m.Events.Event(
			events.Pod(v.pod),
			corev1.EventTypeNormal,
			events.SandboxChanged,
			"Pod sandbox changed, it will be killed and re-created.",
		)
	} else if ranBefore(v.pod) {
		w.m.Events.Event(events.Pod(v.pod), corev1.EventTypeWarning, events.SandboxChanged, "Pod sandbox is lost, it will be re-created: the runtime no longer knows it.")
	}
	if !w.allocateDevices(ctx, v) {
		return
	}
	if _, err := w.mountVolumes(ctx, v, nil, true); err != nil {
		if full, ok := errors.AsType[*volumes.LimitError](err); ok && !ranBefore(v.pod) {
			w.refuse(v.pod, &status.Rejection{Reason: full.Reason(), Message: "Pod was rejected: " + err.Error()})
			return
		}
		w.sandboxFailed(ctx, v, events.FailedMount, err.Error(), err)
		return
	}
	if err := w.prepareClaims(ctx, v.pod); err != nil {
		w.sandboxFailed(ctx, v, events.FailedPrepareDynamicResources, fmt.Sprintf("Failed to prepare dynamic resources: %v", err), err)
		return
	}
	users, err := w.takeUsers(ctx, v.pod)
	if err != nil {
		w.sandboxFailed(ctx, v, events.FailedCreateSandbox, err.Error(), err)
		return
	}
	cfg, err := podconfig.Sandbox(v.pod, attempt, w.m.Dirs, w.m.DNS(), users, w.m.node())
	if err != nil {
		w.sandboxFailed(ctx, v, events.FailedCreateSandbox, err.Error(), err)
		return
	}
	w.pinPod(cfg.GetLinux().GetResources())
	if err := os.MkdirAll(cfg.LogDirectory, 0o755); err != nil {
		w.sandboxFailed(ctx, v, events.FailedCreateSandbox, err.Error(), err)
		return
	}
	handler, err := w.runtimeHandler(ctx, v.pod)
	if err == nil {
		_, err = w.m.Runtime.RunPodSandbox(ctx, cfg, handler)
	}
	if err != nil {
		w.sandboxFailed(ctx, v, events.FailedCreateSandbox, fmt.Sprintf("Failed to create pod sandbox: %v", err), err)
		return
	}
	w.mu.Lock()
	w.notes.podRetries = 0
	w.mu.Unlock()
	w.tellOmitted(v.pod)
	w.removeOldSandboxes(ctx, v)
}

// takeUsers gives the pod users of its own if it shall have a user namespace.
func (w *worker) takeUsers(ctx context.Context, pod *corev1.Pod) (*userns.Range, error) {
	node, err := nodeOf(ctx, w.m.Runtime)
	if err != nil {
		return nil, err
	}
	return w.m.Users.For(pod, node.UserNamespaces)
}

// tellOmitted says what the resolver of the pod does not get.
func (w *worker) tellOmitted(pod *corev1.Pod) {
	_, omitted := w.m.DNS().Pod(pod)
	for _, text := range omitted {
		w.m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, events.DNSConfigForming, text)
	}
}

// ranBefore reports whether the API knows of a container of the pod.
func ranBefore(pod *corev1.Pod) bool {
	return slices.ContainsFunc(
		slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses),
		func(s corev1.ContainerStatus) bool {
			return s.ContainerID != ""
		},
	)
}

// runtimeHandler is what the pod's RuntimeClass asks of the runtime, which refuses a handler that it does not have.
func (w *worker) runtimeHandler(ctx context.Context, pod *corev1.Pod) (string, error) {
	class := pod.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	handler, err := w.m.RuntimeHandler(ctx, *class)
	if err != nil {
		return "", fmt.Errorf("failed to get runtime class %q: %w", *class, err)
	}
	return handler, nil
}

// sandboxFailed says why and waits longer each time.
func (w *worker) sandboxFailed(ctx context.Context, v view, reason, message string, err error) {
	if ctx.Err() != nil {
		return
	}
	w.logger.Warn("pod cannot start yet", "reason", reason, "err", err)
	w.m.Events.Event(events.Pod(v.pod), corev1.EventTypeWarning, reason, message)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.podRetryAt = time.Now().Add(retryDelay(w.notes.podRetries))
	w.notes.podRetries++
}

func retryDelay(failures int) time.Duration {
	d := startRetryMin
	for range failures {
		d = min(d*2, startRetryMax)
	}
	return d
}

// removeOldSandboxes removes dead ones that no container belongs to any more.
func (w *worker) removeOldSandboxes(ctx context.Context, v view) {
	for _, s := range v.runtime.Sandboxes {
		if s.State == 0 {
			continue
		}
		used := false
		for _, c := range v.runtime.Containers {
			used = used || c.SandboxID == s.Id
		}
		if used {
			continue
		}
		if err := w.m.Runtime.RemovePodSandbox(ctx, s.Id); err != nil && ctx.Err() == nil {
			w.logger.Warn("cannot remove an old sandbox", "sandbox", s.Id, "err", err)
		}
	}
}

// mountVolumes makes the volumes ready and remembers their places; setup says that nothing of the pod runs.
func (w *worker) mountVolumes(ctx context.Context, v view, ips []string, setup bool) (volumes.Places, error) {
	if w.m.Contents != nil { // before they are read, so that no change is missed
		w.m.Contents.Follow(v.pod, w.contentChanged)
	}
	w.mu.Lock()
	w.notes.stale = false
	w.mu.Unlock()
	in := volumes.Input{Pod: v.pod, PodIPs: ips, HostIPs: w.m.HostIPs(), Allocatable: w.m.Allocatable(), Setup: setup}
	places, err := w.m.Volumes.Mount(ctx, in)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.places, w.notes.refreshed = places, time.Now()
	return places, nil
}

// refresh brings volume content up to date; a failure leaves the old content.
func (w *worker) refresh(ctx context.Context, v view) {
	if _, err := w.mountVolumes(ctx, v, podIPs(v.pod, v.runtime, w.m.HostIPs()), false); err != nil && ctx.Err() == nil {
		w.m.Events.Event(events.Pod(v.pod), corev1.EventTypeWarning, events.FailedMount, err.Error())
		w.mu.Lock()
		w.notes.refreshed = time.Now()
		w.mu.Unlock()
	}
}

// hostsFile writes the pod's /etc/hosts and returns its path.
func (w *worker) hostsFile(v view) (string, error) {
	content, err := hosts(v.pod, podIPs(v.pod, v.runtime, w.m.HostIPs()), w.m.DNS().Domain)
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.m.Dirs.Pod(v.pod), "etc-hosts")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, content, 0o644)
}
