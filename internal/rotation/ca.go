package rotation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// CAKept is how long the old authority is believed after the new one signs, if nothing else is asked for: until people have had themselves
// other certificates and kubeconfigs made.
const CAKept = 7 * 24 * time.Hour

// Unsure are those of nodes that have certificates of the cluster and that no member is sure of: they are waited for, because a node that
// knows the dropped authority alone cannot come back by itself. away says which hold no session with anybody, ended as Lacking.Ended: a
// node that lives with a silent member may have renewed its certificate there, so ended is asked only when all members answer.
func Unsure(members []Member, nodes []string, away func(node string) bool, ended func(node string) string) (waits []Waiting) {
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
	isAnySilent := slices.ContainsFunc(members, func(m Member) bool { return m.Silent != "" })
	var unsure []Lacking
	for _, node := range nodes {
		if known[node] {
			continue
		}
		l := Lacking{Node: node, Away: away(node)}
		if l.Away && !isAnySilent {
			l.Ended = ended(node)
		}
		unsure = append(unsure, l)
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

// Former are the users who have shown any member certificates of the old authority, and when last; nil if none has.
func Former(members []Member) (last map[string]time.Time) {
	for _, m := range members {
		held, _ := m.find(CA)
		for user, at := range held.Former {
			if last == nil {
				last = map[string]time.Time{}
			}
			if at.After(last[user]) {
				last[user] = at
			}
		}
	}
	return last
}

// former names users, who was seen last first, LackingMax of them.
func former(last map[string]time.Time) string {
	users := slices.SortedFunc(maps.Keys(last), func(a, b string) int {
		return cmp.Or(last[b].Compare(last[a]), strings.Compare(a, b))
	})
	var named []string
	for _, user := range users[:min(len(users), LackingMax)] {
		named = append(named, fmt.Sprintf("%s (last %s)", user, at(last[user])))
	}
	if more := len(users) - LackingMax; more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(named, ", ")
}

const isAway = "it is away, and has to take the change before the old one goes: if it is gone for good, delete its Node " +
	"(if it comes back nevertheless, it has to join again)"
