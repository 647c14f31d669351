package peers

import (
	"bytes"
	"crypto/sha256"
	"slices"
)

// State is what a node says of a layer.
type State string

const (
	// None: the node knows nothing of it.
	None State = ""
	// Wanted: the node asks others for it.
	Wanted State = "wanted"
	// Fetching: it comes from its registry.
	Fetching State = "fetching"
	// Here: the node hands it out.
	Here State = "here"
	// Unshared: the node has it, and cannot hand it out.
	Unshared State = "unshared"
)

// StateHeader has the State in all answers of an agent; those that have the layer have the status 200, or 503 while they cannot send it.
const StateHeader = "Setpoint-Layer"

type answer struct {
	node  string
	state State
	// first: the node comes before this one.
	first bool
}

// decide says from which node to take the layer, whether to wait, or, if neither, that it is this node's to fetch. claimed: this node says
// already that it fetches.
func decide(answers []answer, claimed bool) (node string, wait bool) {
	has := func(is func(answer) bool) int { return slices.IndexFunc(answers, is) }
	if i := has(func(a answer) bool { return a.state == Here }); i >= 0 {
		return answers[i].node, false
	}
	if has(func(a answer) bool { return a.state == Unshared }) >= 0 {
		return "", false
	}
	return "", has(func(a answer) bool {
		return a.state == Fetching && (a.first || !claimed) || a.state == Wanted && a.first
	}) >= 0
}

// inOrder are the nodes in the order that all nodes have for this digest. While self is empty none comes before it: they cannot know where
// it is.
func inOrder(digest, self string, nodes []string) []answer {
	type ranked struct {
		answer
		rank [sha256.Size]byte
	}
	own := sha256.Sum256([]byte(digest + " " + self))
	var all []ranked
	for _, node := range nodes {
		rank := sha256.Sum256([]byte(digest + " " + node))
		all = append(all, ranked{answer{node: node, first: self != "" && bytes.Compare(rank[:], own[:]) < 0}, rank})
	}
	slices.SortFunc(all, func(a, b ranked) int { return bytes.Compare(a.rank[:], b.rank[:]) })
	sorted := make([]answer, len(all))
	for i := range all {
		sorted[i] = all[i].answer
	}
	return sorted
}
