package volumebinder

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// claimView is what the plan for one claim depends on.
type claimView struct {
	claim *corev1.PersistentVolumeClaim
	// candidates are the volumes that are free or reserved for the claim. Only a claim that names no volume has them.
	candidates []*corev1.PersistentVolume
	// named is the volume that the claim names; nil if it does not exist.
	named *corev1.PersistentVolume
	// class is the claim's; nil if it does not exist.
	class *storagev1.StorageClass
	// fallback is the default class; nil if there is none.
	fallback *storagev1.StorageClass
	// pods use the claim and have no node.
	pods []string
}

// claimPlan is what to do for one claim: one of bind, rewrite and phase at most.
type claimPlan struct {
	// bind is the volume to bind it to.
	bind *corev1.PersistentVolume
	// rewrite is the claim as it is to be written.
	rewrite *corev1.PersistentVolumeClaim
	// phase is the one that it is in without a volume; empty leaves the status as it is.
	phase corev1.PersistentVolumeClaimPhase
	// says is an event on the claim. That of a lost claim comes when its phase changes.
	says event
}

// event is an event without its object; the zero value is none.
type event struct{ kind, reason, message string }

func normal(reason, message string) event {
	return event{corev1.EventTypeNormal, reason, message}
}

func warning(reason, message string) event {
	return event{corev1.EventTypeWarning, reason, message}
}

// planClaim says what to do for a claim.
func planClaim(v claimView) (claimPlan, error) {
	switch {
	case metav1.HasAnnotation(v.claim.ObjectMeta, volume.AnnBindCompleted):
		return planBound(v), nil
	case v.claim.Spec.VolumeName != "":
		return planNamed(v), nil
	}
	return planUnbound(v)
}

// planBound keeps a claim bound that was, or finds that its volume is lost.
func planBound(v claimView) claimPlan {
	lost := func(reason, message string) claimPlan {
		return claimPlan{phase: corev1.ClaimLost, says: warning(reason, message)}
	}
	switch {
	case v.claim.Spec.VolumeName == "":
		return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	case v.named == nil:
		return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case v.named.Spec.ClaimRef == nil || v.named.Spec.ClaimRef.UID == v.claim.UID:
		return claimPlan{bind: v.named}
	}
	return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
}

// planNamed binds a claim to the volume that it names, if that may be.
func planNamed(v claimView) claimPlan {
	pending := claimPlan{phase: corev1.ClaimPending}
	switch {
	case v.named == nil:
		return pending
	case v.named.Spec.ClaimRef == nil:
		if err := satisfies(v.named, v.claim); err != nil {
			pending.says = warning("VolumeMismatch", fmt.Sprintf("Cannot bind to requested volume %q: %s", v.named.Name, err))
			return pending
		}
		return claimPlan{bind: v.named}
	case volume.IsVolumeBoundToClaim(v.named, v.claim):
		return claimPlan{bind: v.named}
	}
	pending.says = warning("FailedBinding", fmt.Sprintf("volume %q already bound to a different claim.", v.named.Name))
	return pending
}

// planUnbound finds a volume for a claim that names none, or who is to make one.
func planUnbound(v claimView) (claimPlan, error) {
	waits := waitsForConsumer(v.class)
	found, err := bestMatch(v.claim, v.candidates, waits)
	switch {
	case err != nil:
		return claimPlan{}, err
	case found != nil:
		return claimPlan{bind: found}, nil
	case !volume.PersistentVolumeClaimHasClass(v.claim) && v.fallback != nil:
		next := v.claim.DeepCopy()
		next.Spec.StorageClassName = &v.fallback.Name
		return claimPlan{rewrite: next}, nil
	case waits && !volume.IsDelayBindingProvisioning(v.claim):
		return claimPlan{phase: corev1.ClaimPending, says: waiting(v.pods)}, nil
	case volume.GetPersistentVolumeClaimClass(v.claim) != "":
		return planProvisioning(v), nil
	}
	return claimPlan{phase: corev1.ClaimPending, says: normal(
		"FailedBinding", "no persistent volumes available for this claim and no storage class is set")}, nil
}

// waitsForConsumer tells whether claims of the class are bound only when a pod that uses them has a node.
func waitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// waiting says for what a claim waits that is bound for its first consumer.
func waiting(pods []string) event {
	switch len(pods) {
	case 0:
		return normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
	case 1:
		return normal("WaitForPodScheduled", fmt.Sprintf("waiting for pod %s to be scheduled", pods[0]))
	}
	return normal("WaitForPodScheduled", fmt.Sprintf("waiting for pods %s to be scheduled", strings.Join(pods, ",")))
}

// inTree begins the names of provisioners that are built into upstream.
const inTree = "kubernetes.io/"

// planProvisioning tells the provisioner of the claim's class that the claim is waiting for it. Nobody is built in.
func planProvisioning(v claimView) claimPlan {
	if v.class == nil {
		name := volume.GetPersistentVolumeClaimClass(v.claim)
		return claimPlan{says: warning("ProvisioningFailed", fmt.Sprintf("storageclass.storage.k8s.io %q not found", name))}
	}
	by := v.class.Provisioner
	if strings.HasPrefix(by, inTree) {
		return claimPlan{says: warning("ProvisioningFailed", "no volume plugin matched name: "+by)}
	}
	plan := claimPlan{says: normal("ExternalProvisioning", fmt.Sprintf("Waiting for a volume to be created either by the external provisioner '%s' "+
		"or manually by the system administrator. If volume creation is delayed, please verify that "+
		"the provisioner is running and correctly registered.", by))}
	if v.claim.Annotations[volume.AnnStorageProvisioner] != by {
		plan.rewrite = v.claim.DeepCopy()
		annotate(plan.rewrite, volume.AnnBetaStorageProvisioner, by)
		annotate(plan.rewrite, volume.AnnStorageProvisioner, by)
	}
	return plan
}
