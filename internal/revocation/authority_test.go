package revocation

import (
	"errors"
	"testing"
)

// TestADroppedAuthority: what is open of who has shown a certificate of it ends, and no other is touched.
func TestADroppedAuthority(t *testing.T) {
	var judge Judge
	judge.Believe([]string{"old"})
	ended := map[string]int{}
	open := func(name, authority string) {
		t.Cleanup(judge.Opened(Identity{User: name, Authority: authority}, func() { ended[name]++ }))
	}
	open("a", "old")
	open("b", "new")
	open("token", "")
	open("foreign", "somebody else's")
	judge.Believe([]string{"old", "new"})
	judge.Believe([]string{"new", "old"})
	if len(ended) > 0 {
		t.Errorf("ended too early: %v", ended)
	}
	judge.Believe([]string{"new"})
	if len(ended) != 1 || ended["a"] != 1 {
		t.Errorf("ended: %v", ended)
	}
	if err := judge.Revoked(Identity{User: "a", Authority: "old"}); !errors.Is(err, ErrAuthority) {
		t.Errorf("the old one: %v", err)
	}
	for _, authority := range []string{"new", "", "somebody else's"} {
		if err := judge.Revoked(Identity{User: "a", Authority: authority}); err != nil {
			t.Errorf("%q: %v", authority, err)
		}
	}
	judge.Believe([]string{"old", "new"})
	if err := judge.Revoked(Identity{User: "a", Authority: "old"}); err != nil {
		t.Errorf("it is believed again: %v", err)
	}
}
