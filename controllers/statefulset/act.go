package statefulset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
)

// verb is what a step does.
type verb string

const (
	createPod   verb = "create pod"
	updatePod   verb = "update pod"
	deletePod   verb = "delete pod"
	createClaim verb = "create claim"
	// ownClaim changes who owns a claim.
	ownClaim verb = "own claim"
	// awaitClaim fails: a pod cannot be created before a claim of its name is gone.
	awaitClaim verb = "await claim"
	// reportConflict tells that the retention policy of a claim cannot be followed.
	reportConflict verb = "report conflict"
)

// step is one write.
type step struct {
	verb  verb
	pod   *corev1.Pod
	claim *corev1.PersistentVolumeClaim
}

// act carries out what is to be done, stage by stage.
func (c *controller) act(ctx context.Context, set *appsv1.StatefulSet, t todo) error {
	if err := c.stage(ctx, set, t.mend); err != nil {
		return err
	}
	if len(t.create) == 0 {
		c.expect.Complete(set.UID)
	} else if err := c.expect.Create(set.UID, len(t.create), c.env.Now(),
		func(i int) (types.UID, error) {
			err := c.do(ctx, set, t.create[i])
			return t.create[i].created(), err
		}); err != nil {
		return err
	}
	if err := c.stage(ctx, set, t.own); err != nil {
		return err
	}
	return c.stage(ctx, set, t.remove)
}

// stage carries out units: those of an ordered set one after the other, as far as all goes well.
func (c *controller) stage(ctx context.Context, set *appsv1.StatefulSet, units []unit) error {
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return errors.Join(expect.Parallel(len(units), func(i int) error { return c.do(ctx, set, units[i]) })...)
	}
	for _, u := range units {
		if err := c.do(ctx, set, u); err != nil {
			return err
		}
	}
	return nil
}

// do carries out the steps of a unit until one fails.
func (c *controller) do(ctx context.Context, set *appsv1.StatefulSet, u unit) error {
	for _, s := range u {
		if err := c.step(ctx, set, s); err != nil {
			return fmt.Errorf("%s: %s: %w", s.pod.Name, s.verb, err)
		}
	}
	return nil
}

// created is the uid of the pod that the unit has created; empty if it has not.
func (u unit) created() types.UID {
	for _, s := range u {
		if s.verb == createPod {
			return s.pod.UID
		}
	}
	return ""
}

func (c *controller) step(ctx context.Context, set *appsv1.StatefulSet, s step) error {
	core := c.env.Client.CoreV1()
	switch s.verb {
	case createPod:
		made, err := core.Pods(set.Namespace).Create(ctx, s.pod, metav1.CreateOptions{})
		if err == nil {
			s.pod.UID = made.UID
		}
		return c.told(ctx, set, "Create", s.pod, err)
	case updatePod:
		_, err := core.Pods(set.Namespace).Update(ctx, s.pod, metav1.UpdateOptions{})
		return c.told(ctx, set, "Update", s.pod, err)
	case deletePod:
		return c.told(ctx, set, "Delete", s.pod, c.deletePod(ctx, set, s.pod))
	case createClaim:
		_, err := core.PersistentVolumeClaims(set.Namespace).Create(ctx, s.claim, metav1.CreateOptions{})
		return c.claimTold(ctx, set, s, err)
	case awaitClaim:
		return c.told(ctx, set, "Create", s.pod, fmt.Errorf("pvc %s is being deleted", s.claim.Name))
	case ownClaim:
		_, err := core.PersistentVolumeClaims(set.Namespace).Update(ctx, s.claim, metav1.UpdateOptions{})
		return err
	default:
		c.env.Events.Eventf(set, corev1.EventTypeWarning, "ConflictingController",
			"PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a managing controller, the retention policy is ignored for this claim", s.claim.Name)
		return nil
	}
}

// deletePod deletes the pod that was judged, not a successor of its name.
func (c *controller) deletePod(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	c.expect.Deletion(set.UID, pod.UID)
	err := c.env.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.expect.Deleted(set.UID, pod.UID)
	}
	return err
}

// quiet are failures that only say that this pass saw an old world, or that everything goes: they are no news.
func quiet(ctx context.Context, err error) bool {
	return ctx.Err() != nil || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// told writes the event of a pod's step, in upstream's words.
func (c *controller) told(ctx context.Context, set *appsv1.StatefulSet, verb string, pod *corev1.Pod, err error) error {
	switch {
	case err == nil:
		c.env.Events.Eventf(set, corev1.EventTypeNormal, "Successful"+verb, "%s Pod %s in StatefulSet %s successful", verb, pod.Name, set.Name)
	case !quiet(ctx, err):
		c.env.Events.Eventf(set, corev1.EventTypeWarning, "Failed"+verb, "%s Pod %s in StatefulSet %s failed error: %v", verb, pod.Name, set.Name, err)
	}
	return err
}

// claimTold writes the event of a claim's creation.
func (c *controller) claimTold(ctx context.Context, set *appsv1.StatefulSet, s step, err error) error {
	switch {
	case err == nil:
		c.env.Events.Eventf(set, corev1.EventTypeNormal, "SuccessfulCreate", "Create Claim %s Pod %s in StatefulSet %s success", s.claim.Name, s.pod.Name, set.Name)
	case !quiet(ctx, err):
		c.env.Events.Eventf(set, corev1.EventTypeWarning, "FailedCreate", "Create Claim %s for Pod %s in StatefulSet %s failed error: %v", s.claim.Name, s.pod.Name, set.Name, err)
		err = c.told(ctx, set, "Create", s.pod, fmt.Errorf("failed to create PVC %s: %w", s.claim.Name, err))
	case apierrors.IsAlreadyExists(err):
		err = reconcile.ErrStale
	}
	return err
}

// writeStatus writes the status if it says something new.
func (c *controller) writeStatus(ctx context.Context, set *appsv1.StatefulSet, status appsv1.StatefulSetStatus) error {
	if apiequality.Semantic.DeepEqual(set.Status, status) {
		return nil
	}
	next := set.DeepCopy()
	next.Status = status
	_, err := c.env.Client.AppsV1().StatefulSets(set.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
