package explain

import (
	"maps"
	"slices"
)

// suspectsMax is how many objects of a kind are cleared by name.
const suspectsMax = 5

// firstOf is the beginning of a list.
func firstOf[T any](all []T) []T { return all[:min(len(all), suspectsMax)] }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
