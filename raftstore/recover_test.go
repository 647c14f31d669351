package raftstore

import (
	"errors"
	"strings"
	"testing"
)

// TestTheNewestSurvivorIsRecoveredFrom: the last term counts first, and then how far the log goes; what is as new is no obstacle.
func TestTheNewestSurvivorIsRecoveredFrom(t *testing.T) {
	own := &Stored{ServerID: "own", LastTerm: 3, LastIndex: 10}
	for name, c := range map[string]struct {
		term, index uint64
		newer       bool
	}{
		"the same":                          {3, 10, false},
		"one entry more":                    {3, 11, true},
		"one entry fewer":                   {3, 9, false},
		"a later term with fewer entries":   {4, 1, true},
		"an earlier term with more of them": {2, 99, false},
	} {
		other := &Stored{ServerID: "other", LastTerm: c.term, LastIndex: c.index}
		if got := Newer(other, own); got != c.newer {
			t.Errorf("%s: newer = %v", name, got)
		}
		err := CheckNewest(own, []*Stored{own, other})
		if errors.Is(err, ErrBehind) != c.newer || err != nil && !strings.Contains(err.Error(), "recover from other") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
