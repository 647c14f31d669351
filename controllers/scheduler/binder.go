package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/scheduler/devices"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
	"github.com/setpoint-io/setpoint/controllers/scheduler/points"
	"github.com/setpoint-io/setpoint/controllers/scheduler/volumebinding"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// bindLimit bounds the bindings under way at once; the scheduling loop waits when it is reached. Many at once is what
// lets the store commit them together.
const bindLimit = 64

// volumeWaitLimit bounds the pods that wait for their volumes or devices at once, shared by namespaces; the next one is tried again
// later.
const volumeWaitLimit = 1024

// The gap that the scheduler closes, for who watches it.
const (
	aNode = "a node"
	none  = "none"
)

// binder writes bindings concurrently and settles what was assumed.
type binder struct {
	scheduler *scheduler
	api       Binder
	slots     chan struct{}
	waits     *shares.Places // of pods that wait for their volumes or devices
	volumes   *volumebinding.Writer
	devices   *devices.Writer
	children  sync.WaitGroup
}

func newBinder(s *scheduler, api Binder) *binder {
	if api == nil {
		api = ClientBinder{s.client}
	}
	return &binder{
		scheduler: s, api: api, slots: make(chan struct{}, bindLimit),
		waits: shares.New("pods that wait for volumes or devices", shares.Limits{All: volumeWaitLimit}),
		volumes: &volumebinding.Writer{
			Client: s.client, Clock: s.queue.clock, Pods: s.pods, Claims: s.claims.volumeClaims, Volumes: s.claims.volumes,
		},
		devices: &devices.Writer{Client: s.client, Clock: s.queue.clock},
	}
}

// start starts one binding: of the pod's claims to volumes and devices first, which may take minutes and holds no slot, then
// of the pod to its node.
func (b *binder) start(ctx context.Context, t task, d decision) {
	if d.volumes.Empty() && len(d.devices) == 0 {
		b.bind(ctx, t, d.node, nil)
		return
	}
	t.pass.Go(&b.children, func() error {
		begun := time.Now()
		b.scheduler.evictor.nominate(reconcile.WithCause(ctx, t.pod), t.pod, d.node) // shows what is waited for, and keeps it in the next term
		err := b.bindVolumes(ctx, t, d)
		var claims []*resourcev1.ResourceClaim
		if err == nil {
			claims, err = b.bindDevices(ctx, t, d)
		}
		b.scheduler.durations(t.profile()).Took(points.PreBind, begun, err)
		b.scheduler.settle(d.devices, claims)
		if err != nil {
			b.unreserve(ctx, t, claims)
			b.claimsFailed(ctx, t, d.node, err)
			return err
		}
		b.bind(ctx, t, d.node, claims)
		return nil
	})
}

func (b *binder) bindVolumes(ctx context.Context, t task, d decision) error {
	if d.volumes.Empty() {
		return nil
	}
	leave, err := b.waits.Enter(shares.Namespace(t.pod.Namespace))
	if err == nil {
		longest := b.scheduler.engines[t.profile()].profile.VolumeWaitMax
		err = b.volumes.Bind(reconcile.WithCause(ctx, t.pod), t.pod.Pod, d.node, d.volumes, longest)
		leave()
	}
	b.scheduler.release(d.volumes)
	if err != nil {
		return fmt.Errorf("running PreBind plugin %q: binding volumes: %w", plugins.VolumeBinding{}.Name(), err)
	}
	return nil
}

// bindDevices gives the pod's claims their devices; the claims are given as they are stored.
func (b *binder) bindDevices(ctx context.Context, t task, d decision) ([]*resourcev1.ResourceClaim, error) {
	if len(d.devices) == 0 {
		return nil, nil
	}
	leave, err := b.waits.Enter(shares.Namespace(t.pod.Namespace))
	if err != nil {
		return nil, err
	}
	defer leave()
	claims, err := b.devices.Reserve(reconcile.WithCause(ctx, t.pod), t.pod.Pod, d.devices)
	if err == nil && devices.Pending(claims) {
		b.scheduler.report.recorder(t.pod.Pod).Eventf(t.pod.Pod, corev1.EventTypeNormal, "BindingConditionsPending",
			"waiting for binding conditions for device on node %s", d.node)
		err = b.devices.Await(ctx, claims, b.scheduler.claims.limitsOf(t.pod.Pod))
	}
	if err != nil {
		err = fmt.Errorf("running PreBind plugin %q: %w", plugins.DynamicResources{}.Name(), err)
	}
	return claims, err
}

// deallocate takes back devices that keep the pod off all nodes. The change wakes the pod, and so does a failure.
func (b *binder) deallocate(ctx context.Context, t task, claim *resourcev1.ResourceClaim) {
	b.slots <- struct{}{}
	t.pass.Go(&b.children, func() error {
		defer func() { <-b.slots }()
		err := b.devices.Deallocate(reconcile.WithCause(ctx, t.pod), claim)
		if err == nil || ctx.Err() != nil || apierrors.IsConflict(err) {
			return nil // what made the conflict wakes the pod
		}
		b.scheduler.log.Warn("taking back devices failed", "claim", claim.Namespace+"/"+claim.Name, "err", err)
		b.scheduler.queue.wake(plugin.DevicesChanged)
		return err
	})
}

// unreserve takes a pod that will not be bound off the users of its claims.
func (b *binder) unreserve(ctx context.Context, t task, claims []*resourcev1.ResourceClaim) {
	if len(claims) == 0 || ctx.Err() != nil {
		return // the next term goes on from what is stored
	}
	if err := b.devices.Unreserve(reconcile.WithCause(ctx, t.pod), t.pod.Pod, claims); err != nil {
		b.scheduler.log.Warn("giving back devices failed", "pod", t.pod.Namespace+"/"+t.pod.Name, "err", err)
		return
	}
	b.scheduler.deleted(slices.DeleteFunc(slices.Clone(claims), func(c *resourcev1.ResourceClaim) bool { return !devices.IsExtended(c) }))
}

// claimsFailed takes the assumption back. What was written to volumes stays: the next attempt goes on from there.
func (b *binder) claimsFailed(ctx context.Context, t task, node string, err error) {
	s := b.scheduler
	if ctx.Err() != nil {
		return // the term is over; the next one starts from what the watch says
	}
	s.forget(t)
	if errors.Is(err, volumebinding.ErrPodGone) {
		s.queue.remove(t.pod.UID)
		s.series.Attempted(t.profile(), numbers.Refused, time.Since(t.begun))
		return
	}
	s.evictor.showNoPromise(ctx, t.pod)
	s.log.Warn("binding claims failed", "pod", t.pod.Namespace+"/"+t.pod.Name, "node", node, "err", err)
	if !apierrors.IsConflict(err) {
		s.report.unschedulable(t.pod.Pod, corev1.PodReasonSchedulerError, err.Error(), t.pass)
	}
	b.again(t, err)
}

// bind starts one binding; it blocks while bindLimit of them are under way. The claims are reserved for the pod.
func (b *binder) bind(ctx context.Context, t task, node string, claims []*resourcev1.ResourceClaim) {
	b.slots <- struct{}{}
	t.pass.Go(&b.children, func() error {
		defer func() { <-b.slots }()
		begun := time.Now()
		err := b.write(reconcile.WithGap(reconcile.WithCause(ctx, t.pod), aNode, none), t, node)
		b.scheduler.durations(t.profile()).Took(points.Bind, begun, err)
		if err != nil && !b.happened(ctx, t, node, err) {
			b.failed(ctx, t, node, claims, err)
			return err
		}
		b.scheduler.queue.done(t.entry)
		b.scheduler.countScheduled(t)
		b.scheduler.report.scheduled(t.pod.Pod, node)
		return nil
	})
}

// countScheduled counts a pod that has a node now.
func (s *scheduler) countScheduled(t task) {
	s.series.Attempted(t.profile(), numbers.Scheduled, time.Since(t.begun))
	s.series.PodAttempts.Observe(float64(t.tries))
}

// wait returns when no binding is under way.
func (b *binder) wait() {
	b.children.Wait()
}

func (b *binder) write(ctx context.Context, t task, node string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.pod.Namespace, Name: t.pod.Name, UID: t.pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	return b.api.Bind(ctx, binding)
}

// failed takes the assumption back.
func (b *binder) failed(ctx context.Context, t task, node string, claims []*resourcev1.ResourceClaim, err error) {
	s := b.scheduler
	if ctx.Err() != nil {
		return // the term is over; the next one starts from what the watch says
	}
	if apierrors.IsNotFound(err) {
		b.unreserve(ctx, t, claims)
		s.forget(t)
		s.queue.remove(t.pod.UID)
		s.series.Attempted(t.profile(), numbers.Refused, time.Since(t.begun))
		return
	}
	s.log.Warn("binding failed", "pod", t.pod.Namespace+"/"+t.pod.Name, "node", node, "err", err)
	b.unreserve(ctx, t, claims)
	s.forget(t)
	b.again(t, err)
}

// again lets a pod be tried once more that was refused, and tells of one that is refused again and again.
func (b *binder) again(t task, err error) {
	s := b.scheduler
	s.series.Attempted(t.profile(), numbers.Refused, time.Since(t.begun))
	if tries, tell := s.queue.retry(t.entry, err); tell {
		s.report.recorder(t.pod.Pod).
			Eventf(t.pod.Pod, corev1.EventTypeWarning, "FailedScheduling", "Binding failed %d times in a row: %v", tries, err)
	}
	s.catchUp(t.pod.Pod)
}

// happened asks the server whether a binding that failed so did happen all the same: only its answer may have been lost.
func (b *binder) happened(ctx context.Context, t task, node string, failure error) bool {
	if ctx.Err() != nil || apierrors.IsNotFound(failure) || apierrors.IsConflict(failure) {
		return false // nobody needs to know, or the answer says it
	}
	pod, err := b.scheduler.client.CoreV1().Pods(t.pod.Namespace).Get(ctx, t.pod.Name, metav1.GetOptions{})
	return err == nil && pod.UID == t.pod.UID && pod.Spec.NodeName == node
}
