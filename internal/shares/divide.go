package shares

import (
	"maps"
	"slices"
)

// Divide splits a list, in which what matters more comes first, into what is within the limit and what is cut. Tenants have equally many of
// what is kept; what one of them leaves goes to the others (max-min fairness). It is pure, so whoever divides the same list finds the same.
func Divide[T any](all []T, limit int, tenant func(T) string) (kept, cut []T) {
	if len(all) <= limit {
		return all, nil
	}
	wanted := map[string]int{}
	for _, one := range all {
		wanted[tenant(one)]++
	}
	each, more := level(slices.Sorted(maps.Values(wanted)), limit)
	has := map[string]int{}
	for _, one := range all {
		t := tenant(one)
		switch {
		case has[t] < each:
		case has[t] == each && more > 0:
			more--
		default:
			cut = append(cut, one)
			continue
		}
		has[t]++
		kept = append(kept, one)
	}
	return kept, cut
}

// level is how many each tenant has, if it wants so many, and how many may have one more. The numbers that are wanted are sorted.
func level(wanted []int, limit int) (each, more int) {
	for i, want := range wanted {
		left := len(wanted) - i
		if want*left > limit {
			return limit / left, limit % left
		}
		limit -= want
	}
	return limit, 0
}
