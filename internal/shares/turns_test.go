package shares

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestTurns: who has his share waits until he gives back, others do not, and nobody is forgotten.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(Limits{All: 5, Factor: 4, Privileged: 1})
		var mu sync.Mutex // of those below
		var got []string
		leaves := map[string][]func(){}
		ask := func(ctx context.Context, h Holder) {
			go func() {
				leave, err := turns.Wait(ctx, h)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					got = append(got, err.Error())
					return
				}
				got = append(got, h.Name)
				leaves[h.Name] = append(leaves[h.Name], leave)
			}()
			synctest.Wait()
		}
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
			got = nil
		}
		leave := func(name string) {
			mu.Lock()
			first := leaves[name][0]
			leaves[name] = leaves[name][1:]
			mu.Unlock()
			first()
			synctest.Wait()
		}
		greedy, other := Holder{Name: "greedy"}, Holder{Name: "other"}
		for range 6 {
			ask(t.Context(), greedy)
		}
		expect("one place is left to others", "greedy", "greedy", "greedy", "greedy")
		ask(t.Context(), other)
		expect("who comes late", "other")
		ask(t.Context(), other)
		ask(t.Context(), Holder{Name: "system", Privileged: true})
		expect("who is privileged does not wait for tenants", "system")
		leave("greedy")
		expect("the one with fewer is next", "other")
		ctx, cancel := context.WithCancel(t.Context())
		ask(ctx, Holder{Name: "third"})
		cancel()
		expect("who gives up", context.Canceled.Error())
		leave("other")
		expect("and then the first that came", "greedy")
		for _, name := range []string{"other", "other", "system", "greedy", "greedy", "greedy", "greedy", "greedy", "greedy"} {
			if len(leaves[name]) > 0 {
				leave(name)
			}
		}
		expect("the last", "greedy")
		if len(turns.holders)+turns.taken+len(turns.waiting) != 0 {
			t.Errorf("left: %v, %d taken, %d waiting", turns.holders, turns.taken, len(turns.waiting))
		}
		if _, err := turns.Wait(ctx, other); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
