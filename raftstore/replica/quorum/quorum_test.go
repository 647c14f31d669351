package quorum

import (
	"slices"
	"testing"

	"github.com/hashicorp/raft"
)

// TestOnlyVotersProve: lower case letters are members without a vote.
func TestOnlyVotersProve(t *testing.T) {
	for _, c := range []struct {
		name, members, accepted string
		proved                  bool
	}{
		{"alone", "A", "", true},
		{"one of two", "AB", "", false},
		{"two of two", "AB", "B", true},
		{"one of three", "ABC", "", false},
		{"two of three", "ABC", "C", true},
		{"two of four", "ABCD", "B", false},
		{"two of five", "ABCDE", "E", false},
		{"three of five", "ABCDE", "CE", true},
		{"without a vote", "ABCde", "de", false},
		{"without a vote, beside one with", "ABCde", "Bd", true},
		{"a leader that lost its vote", "aBC", "B", false},
		{"a stranger", "ABC", "X", false},
	} {
		var servers []raft.Server
		for _, id := range c.members {
			s := raft.Server{ID: raft.ServerID(id), Suffrage: raft.Voter}
			if id >= 'a' {
				s.Suffrage = raft.Nonvoter
			}
			servers = append(servers, s)
		}
		accepted := func(id raft.ServerID) bool { return slices.Contains([]rune(c.accepted), []rune(id)[0]) }
		if got := Most(servers, servers[0].ID, accepted); got != c.proved {
			t.Errorf("%s: proved = %v", c.name, got)
		}
	}
}
