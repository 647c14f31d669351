package termstore

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

var errDamaged = errors.New("damaged")

// newStore returns one in memory; stopped is why it stopped the replica.
func newStore() (store *Store, inner *raft.InmemStore, stopped *error) {
	inner, stopped = raft.NewInmemStore(), new(error)
	return New(Config{
		Inner: inner, Damaged: errDamaged,
		Write: func(_ string, f func() error) error { return f() },
		Fail:  func(err error) { *stopped = err },
	}), inner, stopped
}

func TestValuesAreChecked(t *testing.T) {
	store, inner, _ := newStore()
	key := []byte("term")
	if _, err := store.GetUint64(key); !NotFound(err) {
		t.Errorf("missing value: %v", err)
	}
	if err := store.SetUint64(key, 7); err != nil {
		t.Fatal(err)
	}
	if got, err := store.GetUint64(key); got != 7 || err != nil {
		t.Errorf("got %d %v", got, err)
	}
	sealed, err := inner.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		changed := append([]byte(nil), sealed...)
		changed[i] ^= 4
		if err := inner.Set(key, changed); err != nil {
			t.Fatal(err)
		}
		if _, err := store.GetUint64(key); !errors.Is(err, errDamaged) {
			t.Errorf("flip in byte %d: %v", i, err)
		}
	}
}

// TestStoredTermsNeverGoBack: neither the term nor the vote, whatever raft asks for.
func TestStoredTermsNeverGoBack(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     uint64
		refused   bool
	}{
		{"the same term", TermKey, 6, false},
		{"a later term", TermKey, 7, false},
		{"an earlier term", TermKey, 5, true},
		{"a later vote", VoteTermKey, 6, false},
		{"a vote in an earlier term", VoteTermKey, 5, true},
		{"a vote before the last one", VoteTermKey, 3, true},
	} {
		store, _, stopped := newStore()
		for _, before := range []struct {
			key   string
			value uint64
		}{{TermKey, 4}, {VoteTermKey, 4}, {TermKey, 6}} {
			if err := store.SetUint64([]byte(before.key), before.value); err != nil {
				t.Fatal(err)
			}
		}
		err := store.SetUint64([]byte(c.key), c.value)
		if errors.Is(err, ErrWentBack) != c.refused || errors.Is(*stopped, ErrWentBack) != c.refused {
			t.Errorf("%s: %v, stopped for %v", c.name, err, *stopped)
		}
	}
}
