package hugepages

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// IsMedium reports that a volume is in huge pages, of one size or of the pod's only one.
func IsMedium(medium corev1.StorageMedium) bool {
	return medium == corev1.StorageMediumHugePages || strings.HasPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix))
}

// OfMedium is the size, in bytes, of the pages of a volume. The pod must ask for pages of that size, and for no other ones if the
// medium names none.
func OfMedium(medium corev1.StorageMedium, pod *corev1.Pod) (int64, error) {
	named, err := namedSize(medium)
	if err != nil {
		return 0, err
	}
	found := int64(0)
	for _, list := range requests(pod) {
		for name := range list {
			size, ok := pageBytes(name)
			switch {
			case !Is(name):
			case !ok:
				return 0, fmt.Errorf("resource name: %s is an invalid hugepage name", name)
			case named != 0 && size != named:
			case found != 0 && size != found:
				return 0, fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", medium)
			default:
				found = size
			}
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", medium)
	}
	return found, nil
}

// namedSize is 0 for a medium that leaves the size to the pod.
func namedSize(medium corev1.StorageMedium) (int64, error) {
	text, ok := strings.CutPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix))
	if !ok {
		return 0, nil
	}
	q, err := resource.ParseQuantity(text)
	if err == nil && q.Sign() <= 0 {
		err = resource.ErrNumeric
	}
	return q.Value(), err
}

// requests of everything in the pod that can ask for huge pages; limits are equal.
func requests(pod *corev1.Pod) []corev1.ResourceList {
	var out []corev1.ResourceList
	if pod.Spec.Resources != nil {
		out = append(out, pod.Spec.Resources.Requests)
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		out = append(out, c.Resources.Requests)
	}
	return out
}
