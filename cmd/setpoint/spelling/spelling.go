package spelling

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	// prefixMin is how many letters are enough to mean all names that begin with them.
	prefixMin = 3
	// suggestionsMax is how many names a mistake is answered with.
	suggestionsMax = 3
)

// Near are the names that somebody may have meant who typed something else, nearest first.
func Near(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	limit := 1 // letters that may be wrong: of three one, of five two
	if len(typed) >= 5 {
		limit = 2
	}
	away := map[string]int{}
	for _, name := range names {
		d := distance(typed, name)
		if d <= limit || len(typed) >= prefixMin && strings.HasPrefix(name, typed) {
			away[name] = d
		}
	}
	found := slices.Collect(maps.Keys(away))
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(away[a], away[b]), cmp.Compare(a, b)) })
	return found[:min(len(found), suggestionsMax)]
}

// distance is how many letters have to be added, left out, replaced or swapped with the next to
// make one word of the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
