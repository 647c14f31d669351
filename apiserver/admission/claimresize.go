package admission

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// claimResize lets a claim grow only if it is bound and its class can do that.
type claimResize struct {
	onUpdate
	classes objects[*storagev1.StorageClass]
}

func newClaimResize(store *storage.Store) claimResize {
	return claimResize{classes: objectsOf[*storagev1.StorageClass](store, storagev1.SchemeGroupVersion.WithResource("storageclasses"))}
}

// Validate implements admission.ValidationInterface.
func (r claimResize) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isMain(a, claimsResource) {
		return nil
	}
	claim, isClaim := a.GetObject().(*corev1.PersistentVolumeClaim)
	old, wasClaim := a.GetOldObject().(*corev1.PersistentVolumeClaim)
	if !isClaim || !wasClaim || claim.Spec.Resources.Requests.Storage().Cmp(*old.Spec.Resources.Requests.Storage()) <= 0 {
		return nil
	}
	if old.Status.Phase != corev1.ClaimBound {
		//lint:ignore ST1005 upstream's words
		return admission.NewForbidden(a, errors.New("Only bound persistent volume claims can be expanded"))
	}
	class := volume.GetPersistentVolumeClaimClass(claim)
	if class != "" && class == volume.GetPersistentVolumeClaimClass(old) {
		c, found, err := r.classes.get(ctx, "", class)
		if err != nil || found && c.AllowVolumeExpansion != nil && *c.AllowVolumeExpansion {
			return err
		}
	}
	return admission.NewForbidden(
		a,
		errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"),
	)
}
