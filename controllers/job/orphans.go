package job

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// trackedPod maps pods that have the Job's finalizer to themselves.
func trackedPod(_, after metav1.Object) []reconcile.Key {
	if pod, ok := after.(*corev1.Pod); !ok || !tracked(pod) {
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

// podsOfEnded maps a Job that is finished or gone to its pods that still have the finalizer.
func (c *controller) podsOfEnded(before, after metav1.Object) []reconcile.Key {
	job, ok := after.(*batchv1.Job)
	if ok && !finished(job) {
		return nil
	}
	if !ok {
		job = before.(*batchv1.Job)
	}
	pods, err := c.pods.Owned(job)
	if err != nil {
		return nil
	}
	var keys []reconcile.Key
	for _, pod := range pods {
		keys = append(keys, trackedPod(nil, pod)...)
	}
	return keys
}

// freeOrphan takes the finalizer from a pod that no Job will count, so that it can be deleted.
func (c *controller) freeOrphan(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	pod, err := c.pods.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	if counted, err := c.willBeCounted(pod); counted || err != nil {
		return 0, err
	}
	// With its resourceVersion: a Job may adopt it at this moment.
	_, err = c.env.Client.CoreV1().Pods(pod.Namespace).Patch(reconcile.WithCause(ctx, pod), pod.Name, types.StrategicMergePatchType,
		untrackPatch(pod.UID, pod.ResourceVersion), metav1.PatchOptions{})
	if err != nil && !gone(err) {
		return 0, fmt.Errorf("remove finalizer of orphan %s: %w", key, err)
	}
	return 0, nil
}

// willBeCounted tells whether a pod has no finalizer to lose, or a controller that will see to it.
func (c *controller) willBeCounted(pod *corev1.Pod) (bool, error) {
	if !tracked(pod) {
		return true, nil
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return false, nil
	}
	key, ok := reconcile.OwnerKey(pod, kind.GroupKind())
	if !ok {
		return true, nil // it is somebody else's
	}
	job, err := c.jobs.Get(key)
	if err != nil {
		return false, reconcile.IgnoreNotFound(err)
	}
	return job.UID == ref.UID && (elsewhere(job) || !finished(job)), nil
}
