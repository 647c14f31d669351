package raftstore

import (
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestWhoIsOutvoted: upper case letters are voters, and each word is a member with the
// first letter of its state. The first is this replica.
func TestWhoIsOutvoted(t *testing.T) {
	for _, c := range []struct {
		name, voters string
		claims       map[string]byte
		want         opinion
	}{
		{"alone", "A", map[string]byte{"A": 1}, agreed},
		{"one of three spoke", "ABC", map[string]byte{"A": 1}, undecided},
		{"two of three agree", "ABC", map[string]byte{"A": 1, "B": 1}, agreed},
		{"all but this one agree", "ABC", map[string]byte{"A": 1, "B": 2, "C": 2}, outvoted},
		{"one other differs", "ABC", map[string]byte{"A": 1, "B": 2}, undecided},
		{"another differs from most", "ABC", map[string]byte{"A": 1, "B": 2, "C": 1}, agreed},
		{"three states", "ABC", map[string]byte{"A": 1, "B": 2, "C": 3}, split},
		{"two voters differ", "AB", map[string]byte{"A": 1, "B": 2}, split},
		{"two of four differ", "ABCD", map[string]byte{"A": 1, "B": 1, "C": 2, "D": 2}, split},
		{"two of five", "ABCDE", map[string]byte{"A": 1, "B": 2, "C": 2}, undecided},
		{"three of five", "ABCDE", map[string]byte{"A": 1, "B": 2, "C": 2, "D": 2}, outvoted},
		{"members without a vote", "AB", map[string]byte{"A": 1, "B": 1, "c": 2, "d": 2, "e": 2}, agreed},
		{"strangers", "ABC", map[string]byte{"A": 1, "x": 2, "y": 2}, undecided},
		{"this one has no vote", "BCD", map[string]byte{"A": 1, "B": 2, "C": 2}, outvoted},
		{"this one has no vote, and is right", "BCD", map[string]byte{"A": 1, "B": 1, "C": 1}, agreed},
		{"no configuration yet", "", map[string]byte{"A": 1, "B": 2}, undecided},
	} {
		entry := compared{own: stateHash{c.claims["A"]}, others: map[string]stateHash{}}
		for member, state := range c.claims {
			if member != "A" {
				entry.others[member] = stateHash{state}
			}
		}
		var voters []string
		for _, v := range c.voters {
			voters = append(voters, string(v))
		}
		if got, _ := entry.judge("A", voters); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestDoubts: a claim that differs is looked into once, however often it is heard.
func TestDoubts(t *testing.T) {
	c := newClaims()
	doubted := func() uint64 {
		select {
		case index := <-c.doubts:
			return index
		default:
			return 0
		}
	}
	mine, other := stateHash{1}, stateHash{2}
	c.applied(state.Comparison{Index: 10, Want: mine, Got: mine})
	if got := doubted(); got != 0 {
		t.Errorf("doubt of entry %d, where all agree", got)
	}
	if own, known := c.heard(10, "b", mine); !known || own != mine || doubted() != 0 {
		t.Errorf("answer to the same claim: %x, %v, or a doubt", own, known)
	}
	if _, known := c.heard(10, "c", other); !known || doubted() != 10 {
		t.Error("no doubt when another differs")
	}
	if c.heard(10, "c", other); doubted() != 0 {
		t.Error("a second doubt for the same claim")
	}
	if _, known := c.heard(11, "b", other); known || doubted() != 0 {
		t.Error("an answer about an entry that was not applied")
	}
	c.applied(state.Comparison{Index: 12, Want: other, Got: mine})
	c.applied(state.Comparison{Index: 13, Want: other, Got: mine})
	if got := doubted(); got != 13 || doubted() != 0 {
		t.Errorf("doubt of entry %d, want only the newest", got)
	}
	for i := range uint64(claimsKept) {
		c.applied(state.Comparison{Index: 20 + i, Want: mine, Got: mine})
	}
	if _, known := c.get(13); known || len(c.entries) != claimsKept {
		t.Errorf("%d comparisons remembered", len(c.entries))
	}
}
