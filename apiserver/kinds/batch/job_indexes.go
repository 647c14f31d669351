package batch

import (
	"fmt"
	"strconv"
	"strings"
)

// interval is a run of indexes with both its ends.
type interval struct{ first, last int32 }

// parseIndexes reads increasing intervals such as "1,3-5,7", all below completions.
// It returns what it could read and the first error.
func parseIndexes(text string, completions int32) ([]interval, error) {
	if text == "" {
		return nil, nil
	}
	var list []interval
	var first error
	for piece := range strings.SplitSeq(text, ",") {
		next, err := parseInterval(piece, completions)
		if n := len(list); err == nil && n > 0 && list[n-1].last >= next.first {
			err = fmt.Errorf("non-increasing order, previous: %d, current: %d", list[n-1].last, next.first)
		}
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		list = append(list, next)
	}
	return list, first
}

func parseInterval(text string, completions int32) (interval, error) {
	parts := strings.Split(text, "-")
	if len(parts) > 2 {
		return interval{}, fmt.Errorf(
			"the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'",
			text,
		)
	}
	var ends [2]int32
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		switch {
		case err != nil:
			return interval{}, fmt.Errorf("cannot convert string to integer for index: %q", part)
		case n >= int(completions):
			return interval{}, fmt.Errorf("too large index: %q", part)
		}
		ends[i] = int32(n)
	}
	if len(parts) == 1 {
		return interval{ends[0], ends[0]}, nil
	}
	if ends[0] >= ends[1] {
		return interval{}, fmt.Errorf("non-increasing order, previous: %d, current: %d", ends[0], ends[1])
	}
	return interval{ends[0], ends[1]}, nil
}

// countIndexes is how many indexes a text names.
func countIndexes(text string, completions int32) (int32, error) {
	list, err := parseIndexes(text, completions)
	if err != nil {
		return 0, err
	}
	var total int32
	for _, i := range list {
		total += i.last - i.first + 1
	}
	return total, nil
}

// overlap finds an index that both texts name. What cannot be read counts for
// nothing: the rule about the format reports it.
func overlap(one, other string, completions int32) (index int32, found bool) {
	a, _ := parseIndexes(one, completions)
	b, _ := parseIndexes(other, completions)
	for len(a) > 0 && len(b) > 0 {
		if a[0].first <= b[0].last && b[0].first <= a[0].last {
			return max(a[0].first, b[0].first), true
		}
		if a[0].first <= b[0].first {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return 0, false
}
