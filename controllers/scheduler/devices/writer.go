package devices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/clock"
)

// Limits of writing.
const (
	// conflictLimit is how often a claim is read again because somebody else has changed it. Upstream's.
	conflictLimit = 5
	// repeatAfter is the pause before a request without an answer is repeated.
	repeatAfter = time.Second
)

// Writer gives claims their devices and reserves them for pods.
type Writer struct {
	Client kubernetes.Interface
	// Clock is the cluster's time.
	Clock clock.PassiveClock
}

// Reserve writes the devices and the reservation of each claim, and gives the claims as they are stored. With an error those
// are given that were stored before it; the claim that failed has neither the devices nor will it get them later.
// Only if ctx ends the outcome may stay unknown.
func (w *Writer) Reserve(ctx context.Context, pod *corev1.Pod, all []Allocation) (stored []*resourcev1.ResourceClaim, err error) {
	now := metav1.NewTime(w.Clock.Now()).Rfc3339Copy()
	for _, a := range all {
		if a.Result != nil {
			a.Result = a.Result.DeepCopy()
			a.Result.AllocationTimestamp = &now
		}
		if a.Mappings != nil {
			if a.Claim, err = w.create(ctx, pod, a.Claim); err != nil {
				return stored, err
			}
		}
		claim, err := w.reserve(ctx, pod, a)
		if err != nil {
			return stored, err
		}
		stored = append(stored, claim)
		if a.Mappings != nil {
			if err := w.tell(ctx, pod, claim, a.Mappings); err != nil {
				return stored, err
			}
		}
	}
	return stored, nil
}

// create stores the claim for a pod's extended resources. Its name is the pod's own: if the answer was lost, the claim is found
// under it. One of an earlier attempt stays an error until it is deleted.
func (w *Writer) create(ctx context.Context, pod *corev1.Pod, claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	wanted := claim.DeepCopy()
	wanted.UID = ""
	for {
		made, err := w.Client.ResourceV1().ResourceClaims(claim.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			var found *resourcev1.ResourceClaim
			found, readErr := w.read(ctx, claim)
			if readErr == nil && metav1.IsControlledBy(found, pod) && found.Status.Allocation == nil && found.DeletionTimestamp == nil &&
				equality.Semantic.DeepEqual(found.Spec, claim.Spec) {
				return found, nil
			}
		}
		if err == nil {
			return made, nil
		}
		if refused(err) {
			return nil, fmt.Errorf("create claim for extended resources %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// tell writes into the pod's status which of the claim's requests serve which of its containers.
func (w *Writer) tell(
	ctx context.Context, pod *corev1.Pod, claim *resourcev1.ResourceClaim, mappings []corev1.ContainerExtendedResourceRequest,
) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"extendedResourceClaimStatus": corev1.PodExtendedResourceClaimStatus{
			RequestMappings: mappings, ResourceClaimName: claim.Name,
		}},
	})
	if err != nil {
		return err
	}
	for {
		_, err := w.Client.CoreV1().Pods(pod.Namespace).
			Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err == nil {
			return nil
		}
		if refused(err) {
			return fmt.Errorf("update pod %s/%s ExtendedResourceClaimStatus: %w", pod.Namespace, pod.Name, err)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// reserve repeats a write without an answer as it was: if it has taken effect, the repetition is a conflict; and if it is still
// under way, one of the two will be. After a conflict the claim is read again.
func (w *Writer) reserve(ctx context.Context, pod *corev1.Pod, a Allocation) (*resourcev1.ResourceClaim, error) {
	claim, conflicts := a.Claim, 0
	for {
		if err := meanwhile(claim, a); err != nil {
			return nil, err
		}
		next, done, err := w.step(ctx, pod, claim, a)
		switch {
		case done:
			return next, nil
		case err == nil:
			claim = next
		case apierrors.IsConflict(err) && conflicts < conflictLimit:
			conflicts++
			if claim, err = w.read(ctx, a.Claim); err != nil {
				return nil, err
			}
		case refused(err):
			return nil, fmt.Errorf("add reservation to claim %s/%s: %w", claim.Namespace, claim.Name, err)
		default:
			if err := pause(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// meanwhile tells what has happened to the claim since the decision, if that now is wrong.
func meanwhile(claim *resourcev1.ResourceClaim, a Allocation) error {
	has := claim.Status.Allocation
	var what string
	switch {
	case claim.DeletionTimestamp != nil || claim.UID != a.Claim.UID:
		what = "deleted"
	case a.Result != nil && has != nil && !equality.Semantic.DeepEqual(has, a.Result):
		what = "allocated elsewhere"
	case a.Result == nil && has == nil:
		what = "deallocated elsewhere"
	default:
		return nil
	}
	return fmt.Errorf("claim %s/%s got %s in the meantime", claim.Namespace, claim.Name, what)
}

// step makes the next write, if one is left to do.
func (w *Writer) step(ctx context.Context, pod *corev1.Pod, claim *resourcev1.ResourceClaim, a Allocation) (
	next *resourcev1.ResourceClaim, done bool, err error,
) {
	api := w.Client.ResourceV1().ResourceClaims(claim.Namespace)
	next = claim.DeepCopy()
	if a.Result != nil && claim.Status.Allocation == nil && !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
		next.Finalizers = append(next.Finalizers, resourcev1.Finalizer)
		next, err = api.Update(ctx, next, metav1.UpdateOptions{})
		return next, false, err
	}
	if claim.Status.Allocation != nil && resourceclaim.IsReservedForPod(pod, claim, false) {
		return claim, true, nil
	}
	if claim.Status.Allocation == nil {
		next.Status.Allocation = a.Result
	}
	next.Status.ReservedFor = append(next.Status.ReservedFor,
		resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
	next, err = api.UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return next, err == nil, err
}

// read reads the claim until there is an answer.
func (w *Writer) read(ctx context.Context, claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	for {
		found, err := w.Client.ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if err == nil || refused(err) {
			return found, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Unreserve takes the pod off the users of the claims. Their devices stay: the controller resourceclaim takes back those that
// nobody uses. The claim for the pod's extended resources is deleted.
func (w *Writer) Unreserve(ctx context.Context, pod *corev1.Pod, claims []*resourcev1.ResourceClaim) error {
	var failed []error
	for _, claim := range claims {
		if IsExtended(claim) {
			failed = append(failed, w.remove(ctx, claim))
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"reservedFor":[{"$patch":"delete","uid":%q}]}}`, claim.UID, pod.UID)
		_, err := w.Client.ResourceV1().ResourceClaims(claim.Namespace).
			Patch(ctx, claim.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// UnusedByOthers tells whether no pod but this one may be using the claim's devices.
func UnusedByOthers(pod *corev1.Pod, claim *resourcev1.ResourceClaim) bool {
	return !slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID != pod.UID })
}

// remove deletes a claim that was made for extended resources.
func (w *Writer) remove(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	api := w.Client.ResourceV1().ResourceClaims(claim.Namespace)
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"$deleteFromPrimitiveList/finalizers":[%q]}}`, claim.UID, resourcev1.Finalizer)
	_, err := api.Patch(ctx, claim.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err == nil {
		err = api.Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Deallocate takes the devices back, unless the claim has changed. A claim for extended resources is deleted.
func (w *Writer) Deallocate(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	if IsExtended(claim) {
		return w.remove(ctx, claim)
	}
	next := claim.DeepCopy()
	next.Status = resourcev1.ResourceClaimStatus{}
	_, err := w.Client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

// refused tells that a request has an answer, and had no effect.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(repeatAfter):
		return nil
	}
}
