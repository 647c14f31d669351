package resourceclaim

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// reconcileClaim takes the pods out of a claim that do not use it any more. Without users the claim is deallocated, and deleted
// if it was made for a pod that does not need it.
func (c *controller) reconcileClaim(ctx context.Context, key reconcile.Key) error {
	claim, err := c.claims.Get(key)
	if err != nil {
		return reconcile.IgnoreNotFound(err)
	}
	users, err := c.users(ctx, claim)
	if err != nil {
		return err
	}
	ctx = reconcile.WithCause(ctx, claim)
	if err := c.release(ctx, claim, users); err != nil || len(users) > 0 {
		return err
	}
	return c.deleteUnused(ctx, claim)
}

// user is one for whom a claim is reserved.
type user = resourcev1.ResourceClaimConsumerReference

// users are those for whom a claim stays reserved. Who is not a pod stays.
func (c *controller) users(ctx context.Context, claim *resourcev1.ResourceClaim) ([]user, error) {
	var users []user
	for _, u := range claim.Status.ReservedFor {
		if isPod(u) {
			gone, err := c.gone(ctx, claim.Namespace, u.Name, u.UID)
			if err != nil {
				return nil, err
			}
			if gone {
				continue
			}
		}
		users = append(users, u)
	}
	return users, nil
}

// gone reports whether a pod is done, deleted or replaced. A pod that the cache does not have, or under whose name it has
// another one, may be younger than the cache, so the API is asked.
func (c *controller) gone(ctx context.Context, namespace, name string, uid types.UID) (bool, error) {
	pod, err := c.pods.Get(reconcile.Key{Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) || err == nil && pod.UID != uid {
		pod, err = c.env.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	return pod.UID != uid || isDone(pod), nil
}

// release writes who still uses a claim. When the last user goes the claim is deallocated, so that it can be allocated anew for
// the next one, elsewhere. A claim that nobody has used yet keeps its allocation, unless it is being deleted.
func (c *controller) release(ctx context.Context, claim *resourcev1.ResourceClaim, users []user) error {
	protected := slices.Contains(claim.Finalizers, resourcev1.Finalizer)
	changed := len(users) < len(claim.Status.ReservedFor)
	ends := protected && len(users) == 0 && (changed || claim.DeletionTimestamp != nil)
	if !changed && !ends {
		return nil
	}
	next := claim.DeepCopy()
	next.Status.ReservedFor = users
	if ends {
		next.Status.Allocation = nil
	}
	if changed || claim.Status.Allocation != nil {
		written, err := c.env.Client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("release claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		next = written
	}
	if next.Status.Allocation != nil {
		return nil
	}
	return c.unprotect(ctx, next)
}

// unprotect removes the finalizer that keeps an allocated claim.
func (c *controller) unprotect(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	i := slices.Index(claim.Finalizers, resourcev1.Finalizer)
	if i < 0 {
		return nil
	}
	next := claim.DeepCopy()
	next.Finalizers = slices.Delete(next.Finalizers, i, i+1)
	_, err := c.env.Client.ResourceV1().ResourceClaims(claim.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the finalizer of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// deleteUnused deletes a claim that was made for a pod which has finished or been replaced. Garbage collection deletes those of
// pods that are gone.
func (c *controller) deleteUnused(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	owner := owningPod(claim)
	if owner == nil || claim.DeletionTimestamp != nil {
		return nil
	}
	if _, err := c.pods.Get(reconcile.Key{Namespace: claim.Namespace, Name: owner.Name}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	gone, err := c.gone(ctx, claim.Namespace, owner.Name, owner.UID)
	if err != nil || !gone {
		return err
	}
	err = c.env.Client.ResourceV1().ResourceClaims(claim.Namespace).Delete(ctx, claim.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete unused generated claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
