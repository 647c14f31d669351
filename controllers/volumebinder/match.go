package volumebinder

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
)

// accessModes are all access modes, in the order in which upstream writes them.
var accessModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
}

// modesOf is the set of a volume's access modes.
func modesOf(v *corev1.PersistentVolume) []corev1.PersistentVolumeAccessMode {
	var set []corev1.PersistentVolumeAccessMode
	for _, mode := range accessModes {
		if slices.Contains(v.Spec.AccessModes, mode) {
			set = append(set, mode)
		}
	}
	return set
}

// byFit orders volumes by how many access modes they have, then by which these are, then by name. Their sizes are
// compared later, among those of the same modes.
func byFit(a, b *corev1.PersistentVolume) int {
	x, y := modesOf(a), modesOf(b)
	return cmp.Or(cmp.Compare(len(x), len(y)), slices.Compare(x, y), strings.Compare(a.Name, b.Name))
}

// bestMatch is the volume to which a claim that names none is bound; nil if there is none. A volume that is reserved for
// the claim comes first, so that a binding that was interrupted goes on with the same one. A claim that waits for its
// first consumer matches only such a volume.
func bestMatch(claim *corev1.PersistentVolumeClaim, candidates []*corev1.PersistentVolume, waits bool) (*corev1.PersistentVolume, error) {
	groups := [][]*corev1.PersistentVolume{nil} // the reserved ones, then those of each set of access modes
	for _, v := range slices.SortedFunc(slices.Values(candidates), byFit) {
		last := len(groups) - 1
		switch {
		case !volume.CheckAccessModes(claim, v):
		case volume.IsVolumeBoundToClaim(v, claim):
			groups[0] = append(groups[0], v)
		case last > 0 && slices.Equal(modesOf(v), modesOf(groups[last][0])):
			groups[last] = append(groups[last], v)
		default:
			groups = append(groups, []*corev1.PersistentVolume{v})
		}
	}
	for _, group := range groups {
		if found, err := volume.FindMatchingVolume(claim, group, nil, nil, waits, true); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// satisfies says, in upstream's words, why a volume that a claim names is not right for it.
func satisfies(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	wanted, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	switch {
	case v.DeletionTimestamp != nil:
		return fmt.Errorf("the volume is marked for deletion %q", v.Name)
	case has.Value() < wanted.Value():
		return errors.New("requested PV is too small")
	case volume.GetPersistentVolumeClass(v) != volume.GetPersistentVolumeClaimClass(claim):
		return errors.New("storageClassName does not match")
	case valueOf(claim.Spec.VolumeAttributesClassName) != valueOf(v.Spec.VolumeAttributesClassName):
		return errors.New("volumeAttributesClassName does not match")
	case volume.CheckVolumeModeMismatches(&claim.Spec, &v.Spec):
		return errors.New("incompatible volumeMode")
	case !volume.CheckAccessModes(claim, v):
		return errors.New("incompatible accessMode")
	}
	return nil
}

// mayMatch tells whether a volume could be the best match of a claim: a rough answer, to know which claims to look at.
func mayMatch(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	free := v.Spec.ClaimRef == nil && v.Status.Phase == corev1.VolumeAvailable
	return volume.IsVolumeBoundToClaim(v, claim) || free && satisfies(v, claim) == nil
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
