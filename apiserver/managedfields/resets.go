package managedfields

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Resets is the set of fields, given as paths with dots, that an endpoint never changes. A client that sends
// them does not become their manager. It is nil for no paths.
func Resets(paths []string) *fieldpath.Set {
	if len(paths) == 0 {
		return nil
	}
	set := fieldpath.NewSet()
	for _, path := range paths {
		var parts []any
		for name := range strings.SplitSeq(path, ".") {
			parts = append(parts, name)
		}
		set.Insert(fieldpath.MakePathOrDie(parts...))
	}
	return set
}

// ResetFilter tells upstream's field manager of resets under a version; nil for none.
func ResetFilter(gv schema.GroupVersion, reset *fieldpath.Set) map[fieldpath.APIVersion]fieldpath.Filter {
	if reset == nil {
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(gv.String()): fieldpath.NewExcludeSetFilter(reset),
	}
}
