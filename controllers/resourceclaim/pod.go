package resourceclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// reconcilePod makes the claims that a pod lacks and writes their names into its status. If it has all of them, it reserves
// those that a pod on a node needs.
func (c *controller) reconcilePod(ctx context.Context, key reconcile.Key) error {
	pod, err := c.pods.Get(key)
	if apierrors.IsNotFound(err) || err == nil && !mayNeedClaims(pod) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx = reconcile.WithCause(ctx, pod)
	made, err := c.ensureAll(ctx, pod)
	if err != nil {
		return err
	}
	if len(made) > 0 {
		return c.name(ctx, pod, made) // its new status brings it back
	}
	return c.reserveAll(ctx, pod)
}

// ensureAll returns the claims that the pod's status does not name yet, by the names of their entries.
func (c *controller) ensureAll(ctx context.Context, pod *corev1.Pod) (map[string]string, error) {
	made := map[string]string{}
	for i := range pod.Spec.ResourceClaims {
		entry := &pod.Spec.ResourceClaims[i]
		name, err := c.ensure(ctx, pod, entry)
		if err != nil {
			err = fmt.Errorf("PodResourceClaim %s: %w", entry.Name, err)
			c.env.Events.Event(pod, corev1.EventTypeWarning, "FailedResourceClaimCreation", err.Error())
			if apierrors.IsNotFound(err) || errors.Is(err, resourceclaim.ErrAPIUnsupported) {
				err = reconcile.Terminal(err) // until the template comes
			}
			return nil, err
		}
		if name != "" {
			made[entry.Name] = name
		}
	}
	return made, nil
}

// ensure returns the claim of an entry that the pod's status does not name; empty if there is nothing to name.
func (c *controller) ensure(ctx context.Context, pod *corev1.Pod, entry *corev1.PodResourceClaim) (string, error) {
	name, checkOwner, err := resourceclaim.Name(pod, entry)
	if err != nil && !errors.Is(err, resourceclaim.ErrClaimNotFound) {
		return "", err
	}
	if entry.ResourceClaimTemplateName == nil || err == nil && name == nil {
		return "", nil // a claim of the user's, or none is needed
	}
	if err == nil {
		exists, err := c.exists(ctx, pod, *name, checkOwner)
		if err != nil || exists {
			return "", err
		}
	}
	owned, err := c.claims.Owned(pod)
	if err != nil {
		return "", err
	}
	for _, claim := range owned {
		if claim.Annotations[resourcev1.PodResourceClaimAnnotation] == entry.Name {
			return claim.Name, nil
		}
	}
	return c.create(ctx, pod, entry)
}

// exists asks the API for a claim that the cache does not have: it may be younger than the cache.
func (c *controller) exists(ctx context.Context, pod *corev1.Pod, name string, checkOwner bool) (bool, error) {
	claim, err := c.claims.Get(reconcile.Key{Namespace: pod.Namespace, Name: name})
	if apierrors.IsNotFound(err) {
		claim, err = c.env.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("checking claim existence: %w", err)
	}
	return !checkOwner || metav1.IsControlledBy(claim, pod), nil
}

// create makes the claim of an entry. The name follows from the pod and the entry: when an earlier answer was lost, the claim
// is found under it.
func (c *controller) create(ctx context.Context, pod *corev1.Pod, entry *corev1.PodResourceClaim) (string, error) {
	template, err := c.templates.Get(reconcile.Key{Namespace: pod.Namespace, Name: *entry.ResourceClaimTemplateName})
	if err != nil {
		return "", fmt.Errorf("resource claim template %q: %w", *entry.ResourceClaimTemplateName, err)
	}
	client := c.env.Client.ResourceV1().ResourceClaims(pod.Namespace)
	for try := range nameTries {
		claim := planClaim(pod, entry.Name, template, try)
		_, err := client.Create(ctx, claim, metav1.CreateOptions{})
		c.counted(claim, err)
		if err == nil {
			return claim.Name, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("create ResourceClaim %s: %w", claim.Name, err)
		}
		found, err := client.Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("get ResourceClaim %s: %w", claim.Name, err)
		}
		if err == nil && metav1.IsControlledBy(found, pod) {
			return found.Name, nil
		}
	}
	return "", fmt.Errorf("%d names for its ResourceClaim are taken: delete a ResourceClaim whose name begins with %s",
		nameTries, baseName(pod.Name, entry.Name))
}

// name writes the names of claims into the pod's status, beside those that stand there.
func (c *controller) name(ctx context.Context, pod *corev1.Pod, made map[string]string) error {
	for _, status := range pod.Status.ResourceClaimStatuses {
		if _, ok := made[status.Name]; !ok && status.ResourceClaimName != nil {
			made[status.Name] = *status.ResourceClaimName
		}
	}
	status := applyv1.PodStatus()
	for _, entry := range slices.Sorted(maps.Keys(made)) {
		status.WithResourceClaimStatuses(applyv1.PodResourceClaimStatus().WithName(entry).WithResourceClaimName(made[entry]))
	}
	_, err := c.env.Client.CoreV1().Pods(pod.Namespace).ApplyStatus(ctx,
		applyv1.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithStatus(status),
		metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("update pod %s/%s ResourceClaimStatuses: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// reserveAll reserves the allocated claims of a pod that somebody bound without the scheduler.
func (c *controller) reserveAll(ctx context.Context, pod *corev1.Pod) error {
	for i := range pod.Spec.ResourceClaims {
		name, checkOwner, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := c.claims.Get(reconcile.Key{Namespace: pod.Namespace, Name: *name})
		if apierrors.IsNotFound(err) {
			return nil // the pod cannot start yet; the claim's coming brings it back
		}
		if err != nil {
			return err
		}
		if checkOwner && !metav1.IsControlledBy(claim, pod) {
			continue
		}
		if unreserved(pod, claim) {
			if err := c.reserve(ctx, pod, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreserved is true of a claim that a pod on a node may use and has not reserved. The scheduler reserves those of other pods.
func unreserved(pod *corev1.Pod, claim *resourcev1.ResourceClaim) bool {
	return pod.Spec.NodeName != "" && claim.Status.Allocation != nil && !resourceclaim.IsReservedForPod(pod, claim, false)
}

func (c *controller) reserve(ctx context.Context, pod *corev1.Pod, claim *resourcev1.ResourceClaim) error {
	next := claim.DeepCopy()
	next.Status.ReservedFor = append(next.Status.ReservedFor,
		resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
	_, err := c.env.Client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("reserve claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
