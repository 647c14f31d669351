package hugepages

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Limits are what a container or a pod may take of each size that the node has: what the last list that names the size says, else nothing.
func Limits(node corev1.ResourceList, lists ...corev1.ResourceList) []*runtimeapi.HugepageLimit {
	var out []*runtimeapi.HugepageLimit
	for _, name := range slices.Sorted(maps.Keys(node)) {
		size, ok := pageBytes(name)
		if !ok {
			continue
		}
		limit := &runtimeapi.HugepageLimit{PageSize: unit(size)}
		for _, list := range lists {
			if bytes, asked := inSize(list, size); asked {
				limit.Limit = uint64(max(0, bytes))
			}
		}
		out = append(out, limit)
	}
	return out
}

// inSize finds the amount by the size and not by its spelling: hugepages-1024Mi is hugepages-1Gi.
func inSize(list corev1.ResourceList, size int64) (int64, bool) {
	sum, found := int64(0), false
	for name, bytes := range list {
		if s, ok := pageBytes(name); ok && s == size {
			sum, found = sum+bytes.Value(), true
		}
	}
	return sum, found
}

// pageBytes is the size that a resource's name says.
func pageBytes(name corev1.ResourceName) (int64, bool) {
	text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return 0, false
	}
	q, err := resource.ParseQuantity(text)
	return q.Value(), err == nil && q.Sign() > 0
}

// unit is the size as the kernel names it in files of cgroups: 2MB.
func unit(size int64) string {
	names := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	i := 0
	for size%1024 == 0 && i < len(names)-1 {
		size, i = size/1024, i+1
	}
	return strconv.FormatInt(size, 10) + names[i]
}
