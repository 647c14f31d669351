package volumebinder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// actOnClaim carries a plan out. An event follows the write that it is about.
func (c *controller) actOnClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, plan claimPlan) error {
	switch {
	case plan.bind != nil:
		c.voice.settled(reconcile.KeyOf(claim))
		return c.bind(ctx, plan.bind, claim)
	case plan.rewrite != nil:
		if _, err := c.writeClaim(ctx, plan.rewrite); err != nil {
			return err
		}
	case plan.phase != "":
		if plan.phase == corev1.ClaimLost && claim.Status.Phase == corev1.ClaimLost {
			return nil
		}
		if err := c.writeClaimStatus(ctx, without(claim, plan.phase)); err != nil {
			return err
		}
	}
	c.voice.say(claim, plan.says)
	return nil
}

// bind makes the writes that are missing, each on top of what the one before it answered.
func (c *controller) bind(ctx context.Context, v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	next, err := reservedFor(v, claim)
	if err != nil {
		return err
	}
	if next != nil {
		if v, err = c.writeVolume(ctx, next); err != nil {
			return err
		}
	}
	if err := c.writeVolumeStatus(ctx, inPhase(v, corev1.VolumeBound, "")); err != nil {
		return err
	}
	if named := naming(claim, v); named != nil {
		if claim, err = c.writeClaim(ctx, named); err != nil {
			return err
		}
	}
	return c.writeClaimStatus(ctx, having(claim, v))
}

func (c *controller) actOnVolume(ctx context.Context, view volumeView, plan volumePlan) error {
	v := view.volume
	switch {
	case plan.rewrite != nil:
		_, err := c.writeVolume(ctx, plan.rewrite)
		return err
	case plan.phase != "":
		next := inPhase(v, plan.phase, plan.says.message)
		if next == nil {
			return nil
		}
		if err := c.writeVolumeStatus(ctx, next); err != nil {
			return err
		}
	}
	c.voice.say(v, plan.says)
	if view.claim != nil {
		c.voice.say(view.claim, plan.claimSays)
	}
	return nil
}

func (c *controller) writeClaim(ctx context.Context, next *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	written, err := c.env.Client.CoreV1().PersistentVolumeClaims(next.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		c.writtenClaims.Wrote(written)
	}
	return written, err
}

// writeClaimStatus writes nothing if there is nothing to write.
func (c *controller) writeClaimStatus(ctx context.Context, next *corev1.PersistentVolumeClaim) error {
	if next == nil {
		return nil
	}
	written, err := c.env.Client.CoreV1().PersistentVolumeClaims(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		c.writtenClaims.Wrote(written)
	}
	return err
}

func (c *controller) writeVolume(ctx context.Context, next *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	written, err := c.env.Client.CoreV1().PersistentVolumes().Update(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		c.writtenVolumes.Wrote(written)
	}
	return written, err
}

// writeVolumeStatus writes nothing if there is nothing to write.
func (c *controller) writeVolumeStatus(ctx context.Context, next *corev1.PersistentVolume) error {
	if next == nil {
		return nil
	}
	written, err := c.env.Client.CoreV1().PersistentVolumes().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		c.writtenVolumes.Wrote(written)
	}
	return err
}
