package replicaset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controllers/ownership"
)

// firstBatch is how many pods are created before it is known that the API
// accepts them; each accepted batch doubles the next, so that a refused
// template costs one request and not hundreds.
const firstBatch = 1

// act creates or deletes pods.
func (c *controller) act(ctx context.Context, rs *appsv1.ReplicaSet, t todo) error {
	if t.create > 0 {
		return c.create(ctx, rs, t.create)
	}
	if len(t.remove) > 0 {
		return c.remove(ctx, rs, t.remove)
	}
	return nil
}

// create creates n pods in doubling batches and stops after the first batch
// that had an error.
func (c *controller) create(ctx context.Context, rs *appsv1.ReplicaSet, n int) error {
	c.expect.expectCreations(rs.UID, n, time.Now())
	left := n
	for batch := min(firstBatch, left); batch > 0; batch = min(2*batch, left) {
		errs := parallel(batch, func(int) error { return c.createOne(ctx, rs) })
		left -= batch
		if len(errs) > 0 {
			c.expect.withdraw(rs.UID, len(errs)+left)
			return errors.Join(errs...)
		}
	}
	return nil
}

func (c *controller) createOne(ctx context.Context, rs *appsv1.ReplicaSet) error {
	pod, err := c.cfg.Client.CoreV1().Pods(rs.Namespace).Create(ctx, newPod(rs, c.sets.Kind), metav1.CreateOptions{})
	if err == nil {
		c.cfg.Events.Eventf(rs, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
		return nil
	}
	if ctx.Err() == nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		c.cfg.Events.Eventf(rs, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	}
	return fmt.Errorf("create pod: %w", err)
}

// newPod is a pod after the template, controlled by rs.
func newPod(rs *appsv1.ReplicaSet, kind schema.GroupVersionKind) *corev1.Pod {
	template := rs.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    rs.Name + "-",
			Namespace:       rs.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(rs, kind)},
		},
		Spec: template.Spec,
	}
}

func (c *controller) remove(ctx context.Context, rs *appsv1.ReplicaSet, surplus []*corev1.Pod) error {
	errs := parallel(len(surplus), func(i int) error { return c.removeOne(ctx, rs, surplus[i]) })
	return errors.Join(errs...)
}

func (c *controller) removeOne(ctx context.Context, rs *appsv1.ReplicaSet, pod *corev1.Pod) error {
	c.expect.expectDeletion(rs.UID, pod.UID)
	err := c.cfg.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.expect.deleted(rs.UID, pod.UID)
		c.cfg.Events.Eventf(rs, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	c.cfg.Events.Eventf(rs, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
	return nil
}

// parallel runs f n times at once and returns the errors.
func parallel(n int, f func(i int) error) []error {
	results := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = f(i) })
	}
	wg.Wait()
	return slices.DeleteFunc(results, func(err error) bool { return err == nil })
}

// claim adopts and releases; the result is every pod that is ours afterwards.
func (c *controller) claim(ctx context.Context, rs *appsv1.ReplicaSet, claims ownership.Claims[*corev1.Pod]) ([]*corev1.Pod, error) {
	return ownership.CarryOut(ctx, rs, claims, ownership.Writer[*appsv1.ReplicaSet, *corev1.Pod]{
		Kind:  c.sets.Kind,
		Owner: c.sets.Get(rs.Namespace),
		Patch: c.cfg.Client.CoreV1().Pods(rs.Namespace).Patch,
	})
}

// withFailure sets or removes the ReplicaFailure condition.
func withFailure(status, before appsv1.ReplicaSetStatus, t todo, failure error, now time.Time) appsv1.ReplicaSetStatus {
	isFailure := func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }
	had := slices.ContainsFunc(before.Conditions, isFailure)
	if failure == nil || t.create == 0 && len(t.remove) == 0 {
		status.Conditions = slices.DeleteFunc(status.Conditions, isFailure)
		return status
	}
	if had {
		return status
	}
	reason := "FailedCreate"
	if t.create == 0 {
		reason = "FailedDelete"
	}
	status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: failure.Error(),
	})
	return status
}
