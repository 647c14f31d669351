package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
)

func TestWhichWordsProveARound(t *testing.T) {
	const term = 7
	for name, test := range map[string]struct {
		term, seen uint64
		proves     bool
	}{
		"an answer after the round began": {term, 2, true},
		"a later one":                     {term, 3, true},
		"an answer from before":           {term, 1, false},
		"no answer":                       {term, 0, false},
		"of another leader's later term":  {term + 1, 3, false},
		"of a term when this server lost": {term - 1, 3, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w quorumProof
			if w.begin() != 1 || w.begin() != 2 || w.heard(term, 0) != 2 { // words come
				t.Error("rounds do not count")
			}
			time.AfterFunc(time.Millisecond, func() { w.heard(test.term, test.seen) })
			start := time.Now()
			proved, want := w.await(t.Context(), term, 2), quorumProofLimit
			if test.proves {
				want = time.Millisecond
			}
			if waited := time.Since(start); proved != test.proves || waited != want {
				t.Errorf("%s: proved: %v, after %v", name, proved, waited)
			}
		})
	}
}

func TestNobodyWaitsWhereNoWordsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w quorumProof
		for range 2 {
			start := time.Now()
			if w.await(t.Context(), 7, w.begin()) || time.Since(start) != 0 {
				t.Errorf("waited %v", time.Since(start))
			}
			w.heard(7, 0)
			time.Sleep(quorumProofLimit + 1) // the last word is long ago
		}
	})
}

// TestWordsNameRoundsOfTheirOwnTerm: rounds count in each leader for itself.
func TestWordsNameRoundsOfTheirOwnTerm(t *testing.T) {
	seen := &seenRound{term: 7, round: 3}
	for term, round := range map[uint64]uint64{6: 0, 7: 3, 8: 0} {
		if w := newWord("server-1", term, seen); w != (forward.Word{ID: "server-1", Term: term, Seen: round}) {
			t.Errorf("a word of term %d: %+v", term, w)
		}
	}
	if w := newWord("server-1", 7, nil); w.Seen != 0 {
		t.Errorf("a word after no answer: %+v", w)
	}
}
