package volumeexpander

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// resizedFrom is upstream's annotation of a volume whose file system is still to grow.
const resizedFrom = "volume.alpha.kubernetes.io/pre-resize-capacity"

// New tells who waits for a resizer.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "volume_expand",
		Account: "expand-controller",
		Run:     run,
		Reads:   []reconcile.Read{reconcile.PersistentVolumeClaims, reconcile.PersistentVolumes},
	}
}

type controller struct {
	env     *reconcile.Env
	claims  reconcile.Cache[*corev1.PersistentVolumeClaim]
	volumes reconcile.Cache[*corev1.PersistentVolume]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, reconcile.PersistentVolumeClaims.From(env), reconcile.PersistentVolumes.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "volumeexpander", Queue: "volume_expand", Reconcile: c.reconcile, Env: env,
		Sources: []reconcile.Source{reconcile.Changes(c.claims, grown), reconcile.Filled(c.volumes)},
	})
}

// grown are bound claims that appear, or whose request or capacity grows.
func grown(before, after metav1.Object) []reconcile.Key {
	is, ok := after.(*corev1.PersistentVolumeClaim)
	if !ok || is.Status.Phase != corev1.ClaimBound {
		return nil
	}
	if was, ok := before.(*corev1.PersistentVolumeClaim); ok {
		asked, asks := was.Spec.Resources.Requests[corev1.ResourceStorage], is.Spec.Resources.Requests[corev1.ResourceStorage]
		had, has := was.Status.Capacity[corev1.ResourceStorage], is.Status.Capacity[corev1.ResourceStorage]
		if asks.Cmp(asked) <= 0 && has.Cmp(had) <= 0 {
			return nil
		}
	}
	return []reconcile.Key{reconcile.KeyOf(is)}
}

func (c *controller) reconcile(_ context.Context, key reconcile.Key) (time.Duration, error) {
	claim, err := c.claims.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	v, err := c.volumes.Get(reconcile.Key{Name: claim.Spec.VolumeName})
	if apierrors.IsNotFound(err) {
		return 0, nil // the claim is lost, or soon will be
	}
	if err != nil {
		return 0, err
	}
	if waits(claim, v) {
		c.env.Events.Event(claim, corev1.EventTypeNormal, "ExternalExpanding", "waiting for an external controller to expand this PVC")
	}
	return 0, nil
}

// waits tells whether a claim is to get more room in its volume than it has.
func waits(claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) bool {
	if claim.Status.Phase != corev1.ClaimBound || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != claim.UID {
		return false
	}
	asks, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	return asks.Cmp(has) > 0 || metav1.HasAnnotation(v.ObjectMeta, resizedFrom)
}
