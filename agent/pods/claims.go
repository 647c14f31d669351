package pods

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// Claims are ResourceClaims, which DRA drivers prepare.
type Claims interface {
	// Prepare makes the pod's ready, before each of its sandboxes. The error is worth a retry.
	Prepare(ctx context.Context, pod *corev1.Pod) error
	// Given is what a container gets of them.
	Given(pod *corev1.Pod, c *corev1.Container) (podconfig.Given, error)
	// Status is the health of the devices that a container has by them.
	Status(pod *corev1.Pod, c *corev1.Container) []corev1.ResourceStatus
	// Has reports whether drivers may have prepared something for a pod.
	Has(pod types.UID) bool
	// Unprepare ends that. The error is worth a retry.
	Unprepare(ctx context.Context, pod types.UID) error
	// Pods are all for which Has is true.
	Pods() []types.UID
}

var errNoDrivers = errors.New("this node uses no DRA drivers")

func (w *worker) prepareClaims(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case w.m.Claims != nil:
		return w.m.Claims.Prepare(ctx, pod)
	case len(pod.Spec.ResourceClaims) > 0:
		return errNoDrivers
	default:
		return nil
	}
}

func (w *worker) hasClaims() bool { return w.m.Claims != nil && w.m.Claims.Has(w.uid) }

// unprepareClaims comes after the last container and the sandbox, and before the API hears that the pod has ended: then others may get
// the claims.
func (w *worker) unprepareClaims(ctx context.Context, v view) {
	if err := w.m.Claims.Unprepare(ctx, w.uid); err != nil && ctx.Err() == nil {
		w.logger.Warn("cannot unprepare the pod's resource claims yet", "err", err)
		w.m.Events.Eventf(events.Pod(v.pod), corev1.EventTypeWarning, events.FailedUnprepareDynamicResources,
			"Failed to unprepare dynamic resources: %v", err)
		wait.For(ctx, lookRetry) // the next look plans it again
	}
}

// reclaim ends what pods have that are gone. It is called after adoptOrphans.
func (m *Manager) reclaim(ctx context.Context) {
	if m.Devices != nil {
		m.Devices.Retain(m.has)
	}
	if m.Pinning != nil {
		m.Pinning.Retain(m.has)
	}
	if m.Claims == nil {
		return
	}
	for _, pod := range m.Claims.Pods() {
		if !m.has(pod) {
			m.children.Go(func() { m.unprepareLeftover(ctx, pod) })
		}
	}
}

func (m *Manager) unprepareLeftover(ctx context.Context, pod types.UID) {
	for pause := startRetryMin; ; pause = min(2*pause, startRetryMax) {
		err := m.Claims.Unprepare(ctx, pod)
		if err == nil {
			return
		}
		m.Logger.Warn("cannot unprepare the resource claims of a pod that is gone yet", "uid", string(pod), "err", err)
		if !wait.For(ctx, pause) {
			return
		}
	}
}
