package job

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
)

// observe gathers the pods that the Job controls, after adopting and releasing. settled is false while the cache does
// not show all pods that were created: counting then would create twice.
func (c *controller) observe(ctx context.Context, job *batchv1.Job) (pods []*corev1.Pod, settled bool, err error) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil, false, reconcile.Terminal(fmt.Errorf("selector: %w", err))
	}
	settled, expired := c.expect.Check(job.UID, c.env.Now())
	if expired {
		pods, err = c.observeLive(ctx, job, selector)
		return pods, true, err
	}
	// Both are read before the cache: what the cache shows by then needs no correction.
	deleting, released := c.expect.Deleting(job.UID), c.memory.releasedOf(job.UID)
	owned, err := c.pods.Owned(job)
	if err != nil {
		return nil, false, err
	}
	orphans, err := c.pods.Orphans(job.Namespace)
	if err != nil {
		return nil, false, err
	}
	pods, err = adopt.CarryOut(ctx, job, adopt.Claim(job, selector, owned, orphans), adopt.Writer[*batchv1.Job, *corev1.Pod]{
		Kind: kind, Owner: c.env.Client.BatchV1().Jobs(job.Namespace).Get, Patch: c.env.Client.CoreV1().Pods(job.Namespace).Patch,
		Finalizers: []string{batchv1.JobTrackingFinalizer},
	})
	return c.corrected(pods, deleting, released), settled, err
}

// corrected is what the cache shows, with own writes that it does not show yet.
func (c *controller) corrected(pods []*corev1.Pod, deleting, released map[types.UID]bool) []*corev1.Pod {
	out := slices.Clone(pods)
	for i, pod := range out {
		if deleting[pod.UID] && pod.DeletionTimestamp == nil {
			out[i] = shallow(pod)
			out[i].DeletionTimestamp = new(metav1.NewTime(c.env.Now()))
		}
		if released[pod.UID] {
			out[i] = untracked(out[i])
		}
	}
	return out
}

// shallow is a copy of which the top fields may be changed.
func shallow(pod *corev1.Pod) *corev1.Pod {
	out := *pod
	return &out
}

// untracked is the pod without the Job's finalizer.
func untracked(pod *corev1.Pod) *corev1.Pod {
	if !tracked(pod) {
		return pod
	}
	out := shallow(pod)
	out.Finalizers = slices.DeleteFunc(slices.Clone(pod.Finalizers), func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	return out
}

// observeLive asks the API when the cache failed to show an own creation for too long, or when a creation had no answer:
// a lost event neither blocks the Job nor doubles a pod.
func (c *controller) observeLive(ctx context.Context, job *batchv1.Job, selector labels.Selector) ([]*corev1.Pod, error) {
	cached := func() ([]*corev1.Pod, error) { return c.pods.Owned(job) }
	pods, err := c.expect.Live(ctx, c.env.Client.CoreV1().Pods(job.Namespace), job, selector, cached, c.env.Now())
	if err != nil {
		return nil, fmt.Errorf("list pods that the cache does not show: %w", err)
	}
	return pods, nil
}
