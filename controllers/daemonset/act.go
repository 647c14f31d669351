package daemonset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
)

// act creates and deletes pods. A failure of one does not keep the other back.
func (c *controller) act(ctx context.Context, ds *appsv1.DaemonSet, seen observed, t todo) error {
	if !seen.settled {
		return nil
	}
	for _, pod := range t.remove {
		if t.ended[pod.UID] {
			c.tellEnded(ds, pod)
		}
	}
	var created error
	if len(t.create) == 0 {
		c.expect.Complete(ds.UID)
	} else {
		created = c.expect.Create(ds.UID, len(t.create), c.env.Now(), func(i int) (types.UID, error) {
			return c.createOne(ctx, ds, seen.hash, t.create[i])
		})
	}
	removed := expect.Parallel(len(t.remove), func(i int) error { return c.removeOne(ctx, ds, t.remove[i]) })
	return errors.Join(created, errors.Join(removed...))
}

// tellEnded says why a pod is deleted; a failed one makes the next one wait.
func (c *controller) tellEnded(ds *appsv1.DaemonSet, pod *corev1.Pod) {
	node := nodeOf(pod)
	if pod.Status.Phase == corev1.PodSucceeded {
		c.env.Events.Eventf(ds, corev1.EventTypeNormal, "SucceededDaemonPod",
			"Found succeeded daemon pod %s/%s on node %s, will try to delete it", pod.Namespace, pod.Name, node)
		return
	}
	c.backoff.next(ds, node, c.env.Now())
	c.env.Events.Eventf(ds, corev1.EventTypeWarning, "FailedDaemonPod",
		"Found failed daemon pod %s/%s on node %s, will try to kill it", pod.Namespace, pod.Name, node)
}

func (c *controller) createOne(ctx context.Context, ds *appsv1.DaemonSet, hash, node string) (types.UID, error) {
	pod, err := c.env.Client.CoreV1().Pods(ds.Namespace).Create(ctx, newPod(ds, hash, node), metav1.CreateOptions{})
	if err == nil {
		c.env.Events.Eventf(ds, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
		return pod.UID, nil
	}
	if ctx.Err() == nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		c.env.Events.Eventf(ds, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	}
	return "", fmt.Errorf("create pod for node %s: %w", node, err)
}

func (c *controller) removeOne(ctx context.Context, ds *appsv1.DaemonSet, pod *corev1.Pod) error {
	c.expect.Deletion(ds.UID, pod.UID)
	err := c.env.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.expect.Deleted(ds.UID, pod.UID)
		c.env.Events.Eventf(ds, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	c.env.Events.Eventf(ds, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
	return nil
}
