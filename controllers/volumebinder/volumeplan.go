package volumebinder

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// volumeView is what the plan for one volume depends on.
type volumeView struct {
	volume *corev1.PersistentVolume
	// claim is the one that the volume refers to, by name and uid; nil if it is gone.
	claim *corev1.PersistentVolumeClaim
}

// volumePlan is what to do for one volume: a phase or a new version, not both. What comes after that is planned when it
// is written.
type volumePlan struct {
	// phase is the one to be in; empty leaves it as it is.
	phase corev1.PersistentVolumePhase
	// says is an event on the volume. With a phase it comes when the phase changes, and is the message of the status.
	says event
	// claimSays is an event on the claim.
	claimSays event
	// rewrite is the volume as it is to be written.
	rewrite *corev1.PersistentVolume
}

// planVolume says what to do for a volume.
func planVolume(v volumeView) volumePlan {
	ref := v.volume.Spec.ClaimRef
	switch {
	case ref == nil || ref.UID == "":
		return volumePlan{phase: corev1.VolumeAvailable}
	case v.claim == nil:
		return planReleased(v.volume)
	case v.claim.Spec.VolumeName == "":
		return planReserved(v)
	case v.claim.Spec.VolumeName == v.volume.Name:
		return volumePlan{phase: corev1.VolumeBound}
	case metav1.HasAnnotation(v.volume.ObjectMeta, volume.AnnDynamicallyProvisioned) &&
		v.volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return planReleased(v.volume) // it was made for the claim, which has got another one
	}
	return volumePlan{rewrite: givenBack(v.volume)}
}

// planReserved looks at a volume whose claim is not bound yet. Planning the claim binds it, but for one reason.
func planReserved(v volumeView) volumePlan {
	if !volume.CheckVolumeModeMismatches(&v.claim.Spec, &v.volume.Spec) {
		return volumePlan{}
	}
	return volumePlan{
		says: warning("VolumeMismatch", fmt.Sprintf(
			"Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.", v.claim.Name)),
		claimSays: warning("VolumeMismatch", fmt.Sprintf(
			"Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode.", v.volume.Name)),
	}
}

// planReleased releases a volume, and then does what its policy says.
func planReleased(v *corev1.PersistentVolume) volumePlan {
	if v.Status.Phase != corev1.VolumeReleased && v.Status.Phase != corev1.VolumeFailed {
		return volumePlan{phase: corev1.VolumeReleased}
	}
	failed := func(reason, message string) volumePlan {
		return volumePlan{phase: corev1.VolumeFailed, says: warning(reason, message)}
	}
	if v.Annotations[volume.AnnMigratedTo] != "" {
		return volumePlan{}
	}
	switch v.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimRetain:
		return volumePlan{}
	case corev1.PersistentVolumeReclaimRecycle:
		return failed("VolumeFailedRecycle", "No recycler plugin found for the volume!")
	case corev1.PersistentVolumeReclaimDelete:
		if why := undeletable(v); why != "" {
			return failed("VolumeFailedDelete", why)
		}
		return volumePlan{}
	}
	return failed("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
}

// undeletable says why nobody deletes a volume; empty if its provisioner or CSI driver does.
func undeletable(v *corev1.PersistentVolume) string {
	by := v.Annotations[volume.AnnDynamicallyProvisioned]
	switch {
	case strings.HasPrefix(by, inTree):
		return "no volume plugin matched name: " + by
	case by != "" || v.Spec.CSI != nil:
		return ""
	}
	return fmt.Sprintf("error getting deleter volume plugin for volume %q: no deletable volume plugin matched", v.Name)
}
