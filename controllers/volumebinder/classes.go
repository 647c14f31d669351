package volumebinder

import (
	"cmp"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
)

// Upstream's annotations of a default class.
var defaultAnnotations = []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

func isDefault(class *storagev1.StorageClass) bool {
	return slices.ContainsFunc(defaultAnnotations, func(name string) bool { return class.Annotations[name] == "true" })
}

// defaultOf is the newest default class, and of those of one age the first by name; nil if there is none.
func defaultOf(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	defaults := slices.DeleteFunc(slices.Clone(classes), func(c *storagev1.StorageClass) bool { return !isDefault(c) })
	if len(defaults) == 0 {
		return nil
	}
	return slices.MinFunc(defaults, func(a, b *storagev1.StorageClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}
