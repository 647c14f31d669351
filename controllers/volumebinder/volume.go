package volumebinder

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

func (c *controller) reconcileVolume(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	v, err := c.writtenVolumes.Get(c.volumes, key)
	if apierrors.IsNotFound(err) {
		c.voice.settled(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	view := volumeView{volume: v}
	if view.claim, err = c.claimOf(ctx, view.volume); err != nil {
		return 0, err
	}
	return 0, c.actOnVolume(reconcile.WithCause(ctx, view.volume), view, planVolume(view))
}

// claimOf is the claim that a volume refers to; nil if it is gone. Before a volume is released, the API has to say so:
// this cache may lack the newest.
func (c *controller) claimOf(ctx context.Context, v *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	ref := v.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return nil, nil
	}
	claim, err := c.writtenClaims.Get(c.claims, referenceOf(v))
	if err == nil && claim.UID == ref.UID {
		return claim, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed {
		return nil, nil
	}
	claim, err = c.env.Client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != ref.UID {
		return nil, nil
	}
	return claim, err
}
