package statefulset

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// claimName is the name of the claim that a template makes for an ordinal.
func claimName(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) string {
	return template.Name + "-" + set.Name + "-" + strconv.Itoa(ordinal)
}

// isClaimOf reports whether a name is that of a claim of the set.
func isClaimOf(set *appsv1.StatefulSet, name string) bool {
	return slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(template corev1.PersistentVolumeClaim) bool {
		ofSet, found := strings.CutPrefix(name, template.Name+"-")
		_, named := ordinalOf(set, ofSet)
		return found && named
	})
}

// newClaim is the claim that a template makes for an ordinal.
func newClaim(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Name = claimName(set, template, ordinal)
	claim.Namespace = set.Namespace
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	if set.Spec.Selector != nil {
		maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	}
	if owner, _ := wantedOwners(set, true); owner {
		claim.OwnerReferences = append(claim.OwnerReferences, adopt.Reference(set, kind))
	}
	return claim
}

// volumesOf are the pod's volumes: those of the set's claims, and what else the pod has.
func volumesOf(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int) []corev1.Volume {
	var volumes []corev1.Volume
	ours := map[string]bool{}
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		ours[template.Name] = true
		volumes = append(volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, template, ordinal)}}})
	}
	for _, v := range pod.Spec.Volumes {
		if !ours[v.Name] {
			volumes = append(volumes, v)
		}
	}
	return volumes
}

// usesClaims reports whether the pod has a volume of each of the set's claims.
func usesClaims(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == template.Name && v.PersistentVolumeClaim != nil &&
				v.PersistentVolumeClaim.ClaimName == claimName(set, template, ordinal)
		}) {
			return false
		}
	}
	return true
}

// deletes tells when the set's claims are to go: with their scaled down pods, with the set.
func deletes(set *appsv1.StatefulSet) (scaled, deleted bool) {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return false, false
	}
	return policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// wantedOwners tells who owns a claim, so that the garbage collector deletes it with them: the set, or the pod
// once its ordinal is no longer wanted.
func wantedOwners(set *appsv1.StatefulSet, wanted bool) (bySet, byPod bool) {
	scaled, deleted := deletes(set)
	return deleted && (wanted || !scaled), scaled && !wanted
}

// names reports whether ref names an object of this kind and name, of whatever uid.
func names(ref *metav1.OwnerReference, o metav1.Object, gvk schema.GroupVersionKind) bool {
	return ref.APIVersion == gvk.GroupVersion().String() && ref.Kind == gvk.Kind && ref.Name == o.GetName()
}

// stale reports whether refs name a predecessor of the object: the same name, another uid.
func stale(refs []metav1.OwnerReference, o metav1.Object, gvk schema.GroupVersionKind) bool {
	i := slices.IndexFunc(refs, func(ref metav1.OwnerReference) bool { return names(&ref, o, gvk) })
	return i >= 0 && refs[i].UID != o.GetUID()
}

// owned is what a claim's owners are and should be.
type owned struct {
	refs []metav1.OwnerReference
	// change says that refs are other than the claim's.
	change bool
	// conflict says that somebody else controls the claim, so that the retention policy cannot be followed.
	conflict bool
}

// ownersOf judges the owners of a claim of the pod, whose ordinal is wanted or not. A claim that names a predecessor
// of the set or of the pod is left to the garbage collector.
func ownersOf(set *appsv1.StatefulSet, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, wanted bool) owned {
	refs := claim.OwnerReferences
	if stale(refs, set, kind) || stale(refs, pod, podKind) {
		return owned{refs: refs}
	}
	var out owned
	scaled, deleted := deletes(set)
	haveSet, havePod, weak := false, false, false
	for _, ref := range refs {
		bySet, byPod := names(&ref, set, kind), names(&ref, pod, podKind)
		controls := ref.Controller != nil && *ref.Controller
		switch {
		case bySet || byPod:
			haveSet, havePod, weak = haveSet || bySet, havePod || byPod, weak || !controls
		default:
			out.refs = append(out.refs, ref)
			out.conflict = out.conflict || controls && (scaled || deleted)
		}
	}
	wantSet, wantPod := wantedOwners(set, wanted)
	if out.conflict {
		wantSet, wantPod = false, false
	}
	if wantSet {
		out.refs = append(out.refs, adopt.Reference(set, kind))
	}
	if wantPod {
		out.refs = append(out.refs, adopt.Reference(pod, podKind))
	}
	out.change = haveSet != wantSet || havePod != wantPod || weak
	return out
}
