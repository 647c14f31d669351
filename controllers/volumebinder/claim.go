package volumebinder

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

func (c *controller) reconcileClaim(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	claim, err := c.writtenClaims.Get(c.claims, key)
	if apierrors.IsNotFound(err) {
		c.voice.settled(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	plan, err := c.choose(ctx, claim)
	if err != nil {
		return 0, err
	}
	if plan.bind != nil {
		defer c.chose(plan.bind.Name)
	}
	return 0, c.actOnClaim(reconcile.WithCause(ctx, claim), claim, plan)
}

// choose plans for a claim. A volume that it is to be bound to is no other claim's choice until chose is called.
func (c *controller) choose(ctx context.Context, claim *corev1.PersistentVolumeClaim) (claimPlan, error) {
	named, err := c.named(ctx, claim)
	if err != nil {
		return claimPlan{}, err
	}
	c.choosing.Lock()
	defer c.choosing.Unlock()
	view, err := c.viewOfClaim(claim)
	if err != nil {
		return claimPlan{}, err
	}
	view.named = named
	plan, err := planClaim(view)
	if err != nil || plan.bind == nil {
		return plan, err
	}
	if by, taken := c.chosen[plan.bind.Name]; taken && by != claim.UID {
		return claimPlan{}, reconcile.ErrStale // the volume that it names is being bound to another claim
	}
	c.chosen[plan.bind.Name] = claim.UID
	return plan, nil
}

func (c *controller) chose(name string) {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	delete(c.chosen, name)
}

// named is the volume that the claim names. That a bound claim's volume does not exist, the API has to say: this cache
// may lack the newest.
func (c *controller) named(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	if claim.Spec.VolumeName == "" {
		return nil, nil
	}
	v, err := c.writtenVolumes.Get(c.volumes, reconcile.Key{Name: claim.Spec.VolumeName})
	decides := metav1.HasAnnotation(claim.ObjectMeta, volume.AnnBindCompleted) && claim.Status.Phase != corev1.ClaimLost
	if apierrors.IsNotFound(err) && decides {
		v, err = c.env.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return v, err
}

// viewOfClaim reads what else the plan for a claim depends on.
func (c *controller) viewOfClaim(claim *corev1.PersistentVolumeClaim) (claimView, error) {
	view := claimView{claim: claim}
	if claim.Spec.VolumeName != "" || metav1.HasAnnotation(claim.ObjectMeta, volume.AnnBindCompleted) {
		return view, nil
	}
	var err error
	if view.candidates, err = c.candidates(claim); err != nil {
		return view, err
	}
	if name := volume.GetPersistentVolumeClaimClass(claim); name != "" {
		view.class, err = c.classes.Get(reconcile.Key{Name: name})
		if err != nil && !apierrors.IsNotFound(err) {
			return view, err
		}
	}
	all, err := c.classes.List("", nil)
	if err != nil {
		return view, err
	}
	view.fallback = defaultOf(all)
	view.pods, err = c.waitingPods(claim)
	return view, err
}

// candidates are the volumes of the claim's class that are free, and those that are reserved for it.
func (c *controller) candidates(claim *corev1.PersistentVolumeClaim) ([]*corev1.PersistentVolume, error) {
	found, err := c.writtenVolumes.List(func() ([]*corev1.PersistentVolume, error) {
		free, err := c.volumes.ByIndex(freeByClass, volume.GetPersistentVolumeClaimClass(claim))
		reserved, err2 := c.volumes.ByIndex(byReference, reconcile.KeyOf(claim).String())
		return slices.Concat(free, reserved), errors.Join(err, err2)
	})
	return slices.DeleteFunc(found, func(v *corev1.PersistentVolume) bool {
		by, taken := c.chosen[v.Name]
		return taken && by != claim.UID || v.Spec.ClaimRef != nil && !volume.IsVolumeBoundToClaim(v, claim)
	}), err
}

// waitingPods are the names of the pods that use the claim and have no node.
func (c *controller) waitingPods(claim *corev1.PersistentVolumeClaim) ([]string, error) {
	pods, err := c.pods.ByIndex(byClaim, reconcile.KeyOf(claim).String())
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names, err
}
