package mergekeys

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

const (
	// pairsMax is how many pairs of items upstream may compare to merge a patch: it looks for each item of a list in all of that list. They
	// take about an eighth of a second, and belong to one list of 2,000 items.
	pairsMax = 4_000_000
	// fewBytes of an object and a patch hold no list that is long enough.
	fewBytes = 16 << 10
	// strategyMerge is the strategy of lists that are merged and not replaced.
	strategyMerge = "merge"
)

// pending is a patch that will be merged into an object.
type pending struct {
	patch map[string]any
	bytes int
	shape strategicpatch.LookupPatchMeta
}

type pendingKey struct{}

// Affordable says whether the patch that Guard has noted in ctx, if any, can be merged into the object without keeping a processor busy
// for long: 413 if not.
func Affordable(ctx context.Context, into runtime.Object) error {
	p, ok := ctx.Value(pendingKey{}).(*pending)
	if !ok {
		return nil
	}
	if sized, ok := into.(interface{ Size() int }); ok && sized.Size()+p.bytes < fewBytes {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return err
	}
	if pairs(fields, []map[string]any{p.patch}, p.shape) > pairsMax {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the lists that this strategic merge patch changes are too long to be merged (%d pairs "+
			"of items at most, as in one list of 2000): use server-side apply or a JSON patch", pairsMax))
	}
	return nil
}

// pairs is at most how many pairs of items are compared when patches of one object are merged into it.
func pairs(original map[string]any, patches []map[string]any, shape strategicpatch.LookupPatchMeta) (sum int) {
	maps, lists := map[string][]map[string]any{}, map[string][][]any{}
	for _, patch := range patches {
		for key, value := range patch {
			switch value := value.(type) {
			case map[string]any:
				maps[key] = append(maps[key], value)
			case []any:
				lists[field(key)] = append(lists[field(key)], value)
			}
		}
	}
	for name, values := range maps {
		if below, _, err := shape.LookupPatchMetadataForStruct(name); err == nil {
			inside, _ := original[name].(map[string]any)
			sum += pairs(inside, values, below)
		}
	}
	for name, values := range lists {
		items, _ := original[name].([]any)
		sum += listPairs(name, items, values, shape)
	}
	return sum
}

// listPairs is pairs for the lists that are merged into one field; those of directives are among them.
func listPairs(name string, original []any, lists [][]any, shape strategicpatch.LookupPatchMeta) int {
	below, meta, err := shape.LookupPatchMetadataForSlice(name)
	if err != nil || !slices.Contains(meta.GetPatchStrategies(), strategyMerge) {
		return 0
	}
	key, length := meta.GetPatchMergeKey(), len(original)
	patches, originals := map[string][]map[string]any{}, map[string]map[string]any{}
	for _, list := range lists {
		length += len(list)
		for id, item := range byKey(list, key) {
			patches[id] = append(patches[id], item)
		}
	}
	for id, item := range byKey(original, key) {
		originals[id] = item
	}
	sum := len(lists) * length * length
	for id, same := range patches {
		sum += pairs(originals[id], same, below)
	}
	return sum
}

// byKey yields the items of a list that are maps, with the value of their merge key.
func byKey(list []any, key string) func(func(string, map[string]any) bool) {
	return func(yield func(string, map[string]any) bool) {
		for _, item := range list {
			if fields, isMap := item.(map[string]any); isMap && !yield(fmt.Sprint(fields[key]), fields) {
				return
			}
		}
	}
}

// field is what a key is about: a directive, such as $setElementOrder/containers, names its field last.
func field(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// hasList says whether there is a list anywhere in a patch.
func hasList(patch map[string]any) bool {
	for _, value := range patch {
		switch value := value.(type) {
		case []any:
			return true
		case map[string]any:
			if hasList(value) {
				return true
			}
		}
	}
	return false
}
