package shares

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		name, all string
		limit     int
		kept, cut string
	}{
		{"room for all", "aab", 3, "aab", ""},
		{"nothing", "", 0, "", ""},
		{"one tenant: the first stay", "aaaa", 3, "aaa", "a"},
		{"a greedy one leaves others theirs", "aaaaaab", 4, "aaab", "aaa"},
		{"who comes late has as many", "aaaaaabbbb", 4, "aabb", "aaaabb"},
		{"what one leaves goes to the others", "abbbbcccc", 7, "abbbccc", "bc"},
		{"one place more goes to the first", "aaabbb", 3, "aab", "abb"},
		{"fewer places than tenants", "abc", 2, "ab", "c"},
		{"none", "abc", 0, "", "abc"},
	} {
		kept, cut := Divide(strings.Split(c.all, ""), c.limit, func(s string) string { return s })
		if got := strings.Join(kept, ""); got != c.kept {
			t.Errorf("%s: kept %q, want %q", c.name, got, c.kept)
		}
		if got := strings.Join(cut, ""); got != c.cut {
			t.Errorf("%s: cut %q, want %q", c.name, got, c.cut)
		}
	}
}

// TestDivideIsFair: no place stays free while something is cut, and nobody has two fewer than another and lacks one.
func TestDivideIsFair(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var all []string
		for range random.IntN(60) {
			all = append(all, string(rune('a'+random.IntN(1+random.IntN(9)))))
		}
		limit := random.IntN(40)
		kept, cut := Divide(all, limit, func(s string) string { return s })
		if len(kept)+len(cut) != len(all) || len(kept) != min(limit, len(all)) {
			t.Fatalf("%d of %d kept, %d cut, limit %d", len(kept), len(all), len(cut), limit)
		}
		has, lacks := map[string]int{}, map[string]bool{}
		for _, k := range kept {
			has[k]++
		}
		for _, c := range cut {
			lacks[c] = true
		}
		for poor := range lacks {
			for rich, n := range has {
				if n > has[poor]+1 {
					t.Fatalf("%s has %d and lacks some, %s has %d", poor, has[poor], rich, n)
				}
			}
		}
	}
}
