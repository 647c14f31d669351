package volumebinder

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

func (c *controller) claimSources() []reconcile.Source {
	return []reconcile.Source{
		reconcile.Self(c.claims), reconcile.Changes(c.volumes, c.claimsOfVolume),
		reconcile.Changes(c.classes, c.claimsOfClass), reconcile.Changes(c.pods, c.claimsOfPod),
	}
}

func (c *controller) volumeSources() []reconcile.Source {
	return []reconcile.Source{reconcile.Self(c.volumes), reconcile.Changes(c.claims, c.volumesOfClaim)}
}

// claimsOfVolume are the claims that a volume belongs to, did belong to, or could be taken by.
func (c *controller) claimsOfVolume(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, o := range []metav1.Object{before, after} {
		v, ok := o.(*corev1.PersistentVolume)
		if ok && v.Spec.ClaimRef != nil {
			keys = append(keys, referenceOf(v))
		}
		if ok {
			keys = append(keys, c.claimsBy(byVolume, v.Name, everyClaim)...)
		}
	}
	if v, ok := after.(*corev1.PersistentVolume); ok && v.Spec.ClaimRef == nil {
		fits := func(claim *corev1.PersistentVolumeClaim) bool { return mayMatch(v, claim) }
		keys = append(keys, c.claimsBy(unboundByClass, volume.GetPersistentVolumeClass(v), fits)...)
	}
	return keys
}

// claimsOfClass are the claims that a class decides about.
func (c *controller) claimsOfClass(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, o := range []metav1.Object{before, after} {
		class, ok := o.(*storagev1.StorageClass)
		if !ok {
			continue
		}
		keys = append(keys, c.claimsBy(unboundByClass, class.Name, everyClaim)...)
		if isDefault(class) {
			keys = append(keys, c.claimsBy(unboundByClass, noClass, everyClaim)...)
		}
	}
	return keys
}

// claimsOfPod are the unbound claims of a pod that begins or ceases to wait for a node.
func (c *controller) claimsOfPod(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Pod)
	is, _ := after.(*corev1.Pod)
	if waited, waits := was != nil && unscheduled(was), is != nil && unscheduled(is); waited == waits {
		return nil
	}
	if is == nil {
		is = was
	}
	var keys []reconcile.Key
	for _, key := range claimsOf(is) {
		if claim, err := c.claims.Get(key); err == nil && claim.Spec.VolumeName == "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// volumesOfClaim are the volumes that a claim names or that refer to it.
func (c *controller) volumesOfClaim(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, o := range []metav1.Object{before, after} {
		claim, ok := o.(*corev1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		if claim.Spec.VolumeName != "" {
			keys = append(keys, reconcile.Key{Name: claim.Spec.VolumeName})
		}
		found, err := c.volumes.ByIndex(byReference, reconcile.KeyOf(claim).String())
		if err != nil {
			c.env.Logger.Error("looking up volumes failed", "err", err) // the index is declared, so it is there
		}
		for _, v := range found {
			keys = append(keys, reconcile.KeyOf(v))
		}
	}
	return keys
}

func everyClaim(*corev1.PersistentVolumeClaim) bool { return true }

func (c *controller) claimsBy(index reconcile.Index, value string, wanted func(*corev1.PersistentVolumeClaim) bool) []reconcile.Key {
	found, err := c.claims.ByIndex(index, value)
	if err != nil {
		c.env.Logger.Error("looking up claims failed", "err", err) // the index is declared, so it is there
	}
	var keys []reconcile.Key
	for _, claim := range found {
		if wanted(claim) {
			keys = append(keys, reconcile.KeyOf(claim))
		}
	}
	return keys
}
