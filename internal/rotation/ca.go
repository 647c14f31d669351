package rotation

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// CAKept is how long the old authority is believed after the new one signs, if nothing else is asked for: until people have had themselves
// other certificates and kubeconfigs made.
const CAKept = 7 * 24 * time.Hour

// Unsure are those of nodes that have certificates of the cluster and that no member is sure of: they are waited for, because a node that
// knows the dropped authority alone cannot come back by itself. away says which hold no session with anybody.
func Unsure(members []Member, nodes []string, away func(node string) bool) (waits []Waiting) {
	known := map[string]bool{}
	for _, m := range members {
		held, _ := m.find(CA)
		for _, node := range held.Sure {
			known[node] = true
		}
		for _, node := range held.Nodes {
			known[node.Node] = true // waited for already, by this name
		}
	}
	var unsure []Lacking
	for _, node := range nodes {
		if !known[node] {
			unsure = append(unsure, Lacking{Node: node, Away: away(node)})
		}
	}
	slices.SortFunc(unsure, func(a, b Lacking) int { return cmp.Or(strings.Compare(a.Node, b.Node)) })
	if more := len(unsure) - LackingMax; more > 0 {
		unsure = append(unsure[:LackingMax], Lacking{More: more})
	}
	for _, l := range unsure {
		waits = append(waits, l.waiting(CA))
	}
	return waits
}

const isAway = "it is away, and has to take the change before the old one goes: if it is gone for good, delete its Node " +
	"(if it comes back nevertheless, it has to join again)"
