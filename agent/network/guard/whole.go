package guard

import (
	"bytes"
	"maps"
	"slices"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/network/nft"
)

// ruleCounts are how many rules judge makes in each chain.
var ruleCounts = map[string]int{fromPodChain: 4, "prerouting": 1, "forward": 1}

// Whole reports whether the kernel has the table, with its rules and all pods. Before the first Set nothing is missing.
func (g *Guard) Whole() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.to == nil {
		return true, nil
	}
	rules, err := nft.CountRules(g.table) // none if there is no such table
	if err != nil || !maps.Equal(rules, ruleCounts) {
		return false, err
	}
	conn, err := nft.Open()
	if err != nil {
		return false, err
	}
	r := &ruleset{conn: conn, table: g.table}
	for _, s := range r.all() {
		has, err := conn.GetSetElements(s.set)
		if err != nil || !sameKeys(has, s.elements(slices.Collect(maps.Values(g.pods)))) {
			return false, err
		}
	}
	return true, nil
}

func sameKeys(a, b []nftables.SetElement) bool {
	compare := func(x, y nftables.SetElement) int { return bytes.Compare(x.Key, y.Key) }
	slices.SortFunc(a, compare)
	slices.SortFunc(b, compare)
	return slices.EqualFunc(a, b, func(x, y nftables.SetElement) bool { return bytes.Equal(x.Key, y.Key) })
}
