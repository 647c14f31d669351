package differential

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selector is one that some pods or namespaces fit.
func (w *placement) selector(key string) *metav1.LabelSelector {
	switch w.IntN(6) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return nil
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: key, Operator: pick(w.generator, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn), Values: []string{"v0", "v2"},
		}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: key, Operator: pick(w.generator, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),
		}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: fmt.Sprint("v", w.IntN(3))}}
}

func (w *placement) topologyKey() string {
	return pick(w.generator, corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, "disk")
}

func (w *placement) constraint() corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + w.IntN(3)), TopologyKey: w.topologyKey(), LabelSelector: w.selector("app"),
		WhenUnsatisfiable: pick(w.generator, corev1.DoNotSchedule, corev1.ScheduleAnyway),
	}
	if w.chance(3) {
		c.NodeAffinityPolicy = new(pick(w.generator, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	if w.chance(3) {
		c.NodeTaintsPolicy = new(pick(w.generator, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	if c.WhenUnsatisfiable == corev1.DoNotSchedule && w.chance(4) {
		c.MinDomains = new(int32(1 + w.IntN(4)))
	}
	if c.LabelSelector != nil && w.chance(4) {
		c.MatchLabelKeys = []string{"tier"}
	}
	return c
}

func (w *placement) term() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: w.topologyKey(), LabelSelector: w.selector("app")}
	switch w.IntN(5) {
	case 0:
		t.Namespaces = []string{"n1"}
	case 1:
		t.NamespaceSelector = w.selector("team")
	case 2:
		t.Namespaces, t.NamespaceSelector = []string{"n0"}, w.selector("team")
	}
	return t
}

func (w *placement) nodeTerm() corev1.NodeSelectorTerm {
	t := corev1.NodeSelectorTerm{}
	for range w.IntN(3) {
		r := corev1.NodeSelectorRequirement{
			Key:      pick(w.generator, "disk", corev1.LabelTopologyZone),
			Operator: pick(w.generator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist),
		}
		if r.Operator == corev1.NodeSelectorOpIn || r.Operator == corev1.NodeSelectorOpNotIn {
			r.Values = []string{"v0", "v1"}
		}
		t.MatchExpressions = append(t.MatchExpressions, r)
	}
	if w.chance(5) {
		t.MatchFields = []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: pick(w.generator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(w.generator, w.nodes...).Name},
		}}
	}
	return t
}

func (w *placement) addAffinity(p *corev1.Pod) {
	a := &corev1.Affinity{}
	if w.chance(3) {
		a.NodeAffinity = &corev1.NodeAffinity{}
		if w.chance(2 * w.ease) {
			required := &corev1.NodeSelector{}
			for range 1 + w.IntN(2) {
				required.NodeSelectorTerms = append(required.NodeSelectorTerms, w.nodeTerm())
			}
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
		}
		for range w.IntN(3) {
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: int32(1 + w.IntN(100)), Preference: w.nodeTerm()})
		}
	}
	if w.chance(4) {
		a.PodAffinity = &corev1.PodAffinity{}
		for range w.IntN(2) {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, w.term())
		}
		for range w.IntN(3) {
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, w.weighted())
		}
	}
	if w.chance(4) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		for range w.IntN(2) {
			a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, w.term())
		}
		for range w.IntN(3) {
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, w.weighted())
		}
	}
	p.Spec.Affinity = a
}

func (w *placement) weighted() corev1.WeightedPodAffinityTerm {
	return corev1.WeightedPodAffinityTerm{Weight: int32(1 + w.IntN(100)), PodAffinityTerm: w.term()}
}

// volume is one with a claim, that may be missing, or of those kinds that one pod or node may have alone.
func (w *placement) volume(i int) corev1.Volume {
	v := corev1.Volume{Name: fmt.Sprint("v", i)}
	switch w.IntN(9) {
	case 4:
		v.Image = &corev1.ImageVolumeSource{Reference: pick(w.generator, images...)}
	case 0:
		v.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: "disk", ReadOnly: w.chance(2)}
	case 1:
		v.ISCSI = &corev1.ISCSIVolumeSource{IQN: "iqn", TargetPortal: "p", Lun: int32(w.IntN(2)), ReadOnly: w.chance(2)}
	case 2:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case 3:
		v.Ephemeral = &corev1.EphemeralVolumeSource{}
	default:
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("claim-", w.IntN(placementClaims+1))}
	}
	return v
}

// addStorage makes classes, volumes and claims in all states.
func (w *placement) addStorage() {
	for i, mode := range []storagev1.VolumeBindingMode{storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingWaitForFirstConsumer} {
		class := &storagev1.StorageClass{VolumeBindingMode: &mode, Provisioner: pick(w.generator, "kubernetes.io/no-provisioner", "example.com/disks")}
		class.Name = fmt.Sprint("class-", i)
		if w.chance(2) {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{"v0", "v1"}},
			}}}
		}
		w.others = append(w.others, class)
	}
	claims := make([]*corev1.PersistentVolumeClaim, placementClaims)
	for i := range claims {
		claims[i] = w.claim(i)
	}
	for i := range placementVolumes {
		w.others = append(w.others, w.persistentVolume(i, pick(w.generator, claims...)))
	}
	for _, claim := range claims {
		w.others = append(w.others, claim)
	}
}

func (w *placement) claim(i int) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: w.meta(fmt.Sprint("claim-", i))}
	c.Spec.StorageClassName = new(fmt.Sprint("class-", w.IntN(4)))
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{pick(w.generator, corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadWriteOncePod)}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: w.quantity("1Gi", "2Gi")}
	c.Status.Phase = corev1.ClaimPending
	switch w.IntN(8) {
	case 0:
		c.Status.Phase, c.Spec.VolumeName = corev1.ClaimLost, "gone"
	case 1:
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{"kubernetes.io/pvc-protection"}
	case 2:
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": pick(w.generator, w.nodes...).Name}
	}
	return c
}

// persistentVolume is free, reserved for the claim, or bound to it.
func (w *placement) persistentVolume(i int, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: w.meta(fmt.Sprint("volume-", i))}
	v.Namespace, v.Labels = "", w.zones()
	v.Spec.StorageClassName = fmt.Sprint("class-", w.IntN(3))
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: w.quantity("1Gi", "2Gi", "4Gi")}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany}[:1+w.IntN(3)]
	if v.Spec.HostPath = (&corev1.HostPathVolumeSource{Path: "/"}); w.chance(2) {
		handle := fmt.Sprint("handle-", w.IntN(i+1)) // of several volumes it may be the same
		v.Spec.HostPath, v.Spec.CSI = nil, &corev1.CSIPersistentVolumeSource{Driver: pick(w.generator, csiDrivers...), VolumeHandle: handle}
	}
	v.Status.Phase = corev1.VolumeAvailable
	if w.chance(2) {
		required := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{w.nodeTerm()}}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: required}
	}
	if claim.Spec.VolumeName != "" || w.reserved[claim.Name] || w.chance(3) {
		return v
	}
	w.reserved[claim.Name] = true
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	if w.chance(4) {
		return v
	}
	v.Status.Phase, v.Spec.StorageClassName = corev1.VolumeBound, *claim.Spec.StorageClassName
	claim.Spec.VolumeName, claim.Status.Phase = v.Name, corev1.ClaimBound
	if !w.chance(6) {
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return v
}

// zones are the labels of a volume.
func (w *placement) zones() map[string]string {
	if !w.chance(3) {
		return nil
	}
	return map[string]string{pick(w.generator, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone): pick(w.generator, "v0", "v1", "v0__v1")}
}
