package localvolume

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// dataFinalizer keeps a volume in the API while its data may be on a node.
const dataFinalizer = localvolume.Driver + "/data"

// claimView is what the plan for one claim depends on.
type claimView struct {
	claim *corev1.PersistentVolumeClaim
	// class is the claim's; nil if it does not exist.
	class *storagev1.StorageClass
	// node is the one that the scheduler selected; nil if it is not there or has no local volumes.
	node *corev1.Node
	// volume is the one that the claim names; nil if it names none or it does not exist.
	volume *corev1.PersistentVolume
}

// claimPlan is one thing to do for a claim, or none.
type claimPlan struct {
	// provision is the volume to make.
	provision *corev1.PersistentVolume
	// grow makes the claim's volume as large as the claim asks.
	grow bool
	// elsewhere gives up the selected node, for this reason.
	elsewhere string
	// refuse is why no volume is made at all.
	refuse string
}

// planClaim says what to do for a claim.
func planClaim(v claimView) claimPlan {
	switch {
	case v.claim.DeletionTimestamp != nil:
		return claimPlan{}
	case v.claim.Spec.VolumeName != "":
		return claimPlan{grow: v.volume != nil && isOurs(v.volume) && wantsMore(v.claim, v.volume)}
	case v.class == nil || !isOwnClass(v.class) || v.claim.Annotations[volume.AnnStorageProvisioner] != localvolume.Driver:
		return claimPlan{}
	}
	selected := v.claim.Annotations[volume.AnnSelectedNode]
	if why := unserved(v.claim, v.class); why != "" {
		return claimPlan{refuse: why}
	}
	switch {
	case selected == "":
		return claimPlan{}
	case v.node == nil:
		return claimPlan{elsewhere: fmt.Sprintf("node %s has no local volumes", selected)}
	}
	return claimPlan{provision: volumeFor(v)}
}

func isOwnClass(class *storagev1.StorageClass) bool { return class.Provisioner == localvolume.Driver }

// wantsMore: also while only the status is behind.
func wantsMore(claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) bool {
	if claim.Status.Phase != corev1.ClaimBound || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != claim.UID {
		return false
	}
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return requestOf(claim).Cmp(has) > 0
}

// unserved says why a claim can get no local volume; empty if it can.
func unserved(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	immediate := class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer
	shared := slices.ContainsFunc(claim.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m != corev1.ReadWriteOnce && m != corev1.ReadWriteOncePod
	})
	request := requestOf(claim)
	switch {
	case immediate:
		return fmt.Sprintf("class %s needs volumeBindingMode WaitForFirstConsumer: a volume is made on the node where its pod runs", class.Name)
	case shared:
		return "a volume on the disk of one node can only be ReadWriteOnce or ReadWriteOncePod"
	case claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil:
		return "a local volume begins empty: dataSource is not supported"
	case claim.Spec.Selector != nil:
		return "claim.spec.selector is not supported"
	case len(class.Parameters) > 0:
		return fmt.Sprintf("class %s has parameters, which local volumes do not know: %v", class.Name, slices.Sorted(maps.Keys(class.Parameters)))
	case len(class.MountOptions) > 0:
		return fmt.Sprintf("class %s has mountOptions: a local volume is a folder, which is not mounted with options of its own", class.Name)
	case request.Value() <= 0 || request.Value() > localvolume.BytesMax:
		return "the requested size is out of range"
	}
	return ""
}

// volumeFor is the volume of a claim on its node.
func volumeFor(v claimView) *corev1.PersistentVolume {
	policy := corev1.PersistentVolumeReclaimDelete
	if v.class.ReclaimPolicy != nil {
		policy = *v.class.ReclaimPolicy
	}
	name, claim := localvolume.Handle(v.claim.UID), v.claim
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Finalizers: []string{dataFinalizer}, Annotations: map[string]string{volume.AnnDynamicallyProvisioned: localvolume.Driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: *requestOf(claim)}, AccessModes: claim.Spec.AccessModes,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
				ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeReclaimPolicy: policy, StorageClassName: v.class.Name, VolumeMode: claim.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: localvolume.Driver, VolumeHandle: name, VolumeAttributes: map[string]string{nodeAttribute: v.node.Name},
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: on(v.node)},
		},
	}
}

func on(node *corev1.Node) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Labels[corev1.LabelHostname]},
	}}}}}
}
