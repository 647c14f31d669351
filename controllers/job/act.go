package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// act creates or deletes pods.
func (c *controller) act(ctx context.Context, v *view, t todo, settled bool) (outcome, error) {
	o := outcome{active: int32(len(v.active)), ready: v.ready, terminating: int32(len(v.terminating)), managed: t.managed, end: t.end}
	var err error
	switch {
	case len(t.remove) > 0:
		err = c.remove(ctx, v.job, t, &o)
	case len(t.create) > 0:
		var created int32
		created, err = c.create(ctx, v, t.create)
		o.active += created
	case settled:
		c.expect.Complete(v.job.UID)
	}
	o.over = t.end != nil && settled && o.active == 0
	return o, err
}

// create creates a pod for each index and returns how many were.
func (c *controller) create(ctx context.Context, v *view, list []int) (int32, error) {
	var created atomic.Int32
	err := c.expect.Create(v.job.UID, len(list), c.env.Now(), func(i int) (types.UID, error) {
		pod, err := c.createOne(ctx, v.job, newPod(v.job, list[i], v.last[list[i]]))
		if err == nil {
			created.Add(1)
		}
		return pod, err
	})
	return created.Load(), err
}

func (c *controller) createOne(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) (types.UID, error) {
	pod, err := c.env.Client.CoreV1().Pods(job.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err == nil {
		c.env.Events.Eventf(job, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
		return pod.UID, nil
	}
	if ctx.Err() == nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		c.env.Events.Eventf(job, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	}
	return "", fmt.Errorf("create pod: %w", err)
}

// remove deletes active pods and corrects the numbers. While the Job goes on they lose their finalizer first, so that
// they count as nothing.
func (c *controller) remove(ctx context.Context, job *batchv1.Job, t todo, o *outcome) error {
	var removed, ready atomic.Int32
	errs := expect.Parallel(len(t.remove), func(i int) error {
		pod := t.remove[i]
		if err := c.removeOne(ctx, job, pod, t.end == nil); err != nil {
			return err
		}
		removed.Add(1)
		if podstate.Ready(pod) {
			ready.Add(1)
		}
		return nil
	})
	o.active -= removed.Load()
	o.ready -= ready.Load()
	o.terminating += removed.Load()
	return errors.Join(errs...)
}

func (c *controller) removeOne(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, uncounted bool) error {
	if uncounted {
		// With its resourceVersion: one that ended meanwhile counts.
		if err := c.untrack(ctx, job, pod, pod.ResourceVersion); err != nil {
			return err
		}
	}
	c.expect.Deletion(job.UID, pod.UID)
	err := c.env.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.expect.Deleted(job.UID, pod.UID)
		c.env.Events.Eventf(job, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	c.env.Events.Eventf(job, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
	return nil
}

// untrack takes the Job's finalizer from a pod, and remembers it until the cache shows it. A pod that is gone has lost it.
func (c *controller) untrack(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, resourceVersion string) error {
	if !tracked(pod) {
		return nil
	}
	c.memory.release(job.UID, pod.UID) // before it is sent: its event may come before its answer
	_, err := c.env.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType,
		untrackPatch(pod.UID, resourceVersion), metav1.PatchOptions{})
	if err != nil && !gone(err) {
		c.memory.kept(job.UID, pod.UID)
		return fmt.Errorf("remove finalizer of pod %s: %w", pod.Name, err)
	}
	return nil
}

// gone tells whether an error of a patch with a uid says that the object, or one of that uid, is not there.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) }

// untrackPatch takes the finalizer from the pod of that uid, at that version unless it is empty.
func untrackPatch(uid types.UID, resourceVersion string) []byte {
	metadata := map[string]any{"uid": uid, "$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer}}
	if resourceVersion != "" {
		metadata["resourceVersion"] = resourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic("job: a map of strings did not encode: " + err.Error())
	}
	return patch
}

// keepAccount writes the status, releases pods that are listed in it, and goes on until nothing changes.
func (c *controller) keepAccount(ctx context.Context, stored *batchv1.Job, v *view, o outcome, failures streak) error {
	pods, wrote := slices.Clone(v.pods), false
	for {
		status, release := account(v, o, c.env.Now())
		changed := !apiequality.Semantic.DeepEqual(stored.Status, status)
		if changed {
			next, err := c.writeStatus(ctx, stored, status)
			if err != nil || next == nil {
				return err
			}
			c.tell(stored, next)
			c.countEnded(stored, next)
			stored = next
		}
		if wrote = wrote || changed; wrote {
			c.memory.passed(stored, c.env.Now())
		}
		c.memory.setFailures(stored.UID, failures)
		err := c.release(ctx, stored, pods, release)
		if !changed && len(release) == 0 || finished(stored) {
			return err
		}
		v = look(stored, pods)
		if err != nil {
			return errors.Join(err, c.writeRest(ctx, stored, v, o))
		}
	}
}

// writeRest counts what could be released when not everything could.
func (c *controller) writeRest(ctx context.Context, stored *batchv1.Job, v *view, o outcome) error {
	status, _ := account(v, o, c.env.Now())
	if apiequality.Semantic.DeepEqual(stored.Status, status) {
		return nil
	}
	_, err := c.writeStatus(ctx, stored, status)
	return err
}

// release takes the finalizer from pods, and from those in the list.
func (c *controller) release(ctx context.Context, job *batchv1.Job, pods, release []*corev1.Pod) error {
	free := make([]bool, len(release))
	errs := expect.Parallel(len(release), func(i int) error {
		err := c.untrack(ctx, job, release[i], "")
		free[i] = err == nil
		return err
	})
	for i, pod := range release {
		if at := slices.Index(pods, pod); free[i] && at >= 0 {
			pods[at] = untracked(pod)
		}
	}
	return errors.Join(errs...)
}

// writeStatus writes a status; the Job that it returns is nil when there is none any more.
func (c *controller) writeStatus(ctx context.Context, job *batchv1.Job, status batchv1.JobStatus) (*batchv1.Job, error) {
	next := job.DeepCopy()
	next.Status = status
	next, err := c.env.Client.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("write status: %w", err)
	}
	c.memory.wrote(next)
	return next, nil
}

// tell records the events of a status that was written.
func (c *controller) tell(before, job *batchv1.Job) {
	normal := func(reason, message string) { c.env.Events.Event(job, corev1.EventTypeNormal, reason, message) }
	switch was, now := is(before, batchv1.JobSuspended), is(job, batchv1.JobSuspended); {
	case now && !was:
		normal("Suspended", "Job suspended")
	case was && !now:
		normal("Resumed", "Job resumed")
	}
	for _, end := range job.Status.Conditions {
		switch {
		case !finished(job) || end.Status != corev1.ConditionTrue:
		case end.Type == batchv1.JobFailed:
			c.env.Events.Event(job, corev1.EventTypeWarning, end.Reason, end.Message)
		case end.Type == batchv1.JobComplete:
			if n := ptr.Deref(job.Spec.Completions, job.Status.Succeeded); job.Status.Succeeded > n {
				c.env.Events.Event(job, corev1.EventTypeWarning, "TooManySucceededPods",
					"Too many succeeded pods running after completion count reached")
			}
			normal("Completed", "Job completed")
		}
	}
}
