package guard

import (
	"bytes"
	"maps"
	"slices"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// ruleCounts and machineCounts are how many rules judge makes in each chain of the tables.
var (
	ruleCounts    = map[string]int{fromPodChain: 5, preroutingChain: 1, "forward": 1}
	machineCounts = map[string]int{preroutingChain: 1}
)

// Whole reports whether the kernel has the tables, with their rules and all pods. Before the first Set nothing is missing.
func (g *Guard) Whole() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.to == nil {
		return true, nil
	}
	for table, counts := range map[*nftables.Table]map[string]int{g.table: ruleCounts, g.machine: machineCounts} {
		rules, err := nft.CountRules(table) // none if there is no such table
		if err != nil || !maps.Equal(rules, counts) {
			return false, err
		}
	}
	conn, err := nft.Open()
	if err != nil {
		return false, err
	}
	r := g.ruleset(conn)
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
