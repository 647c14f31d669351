package trust

import (
	"bytes"
	"testing"
	"time"
)

// TestWhatIsLockedOpensForServersAlone: with the same key, for the same purpose, beside the same text.
func TestWhatIsLockedOpensForServersAlone(t *testing.T) {
	ca, err := NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	locker := Locker{ca}
	sealed, err := locker.Lock("p", []byte("text"), []byte("bound"))
	if err != nil || bytes.Contains(sealed, []byte("text")) {
		t.Fatalf("%q: %v", sealed, err)
	}
	if text, err := locker.Unlock("p", sealed, []byte("bound")); string(text) != "text" {
		t.Errorf("%q: %v", text, err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, c := range map[string]struct {
		ca             *CA
		purpose, bound string
		sealed         []byte
	}{
		"another cluster": {other, "p", "bound", sealed},
		"another purpose": {ca, "q", "bound", sealed},
		"another text":    {ca, "p", "bounds", sealed},
		"changed":         {ca, "p", "bound", changed},
		"cut":             {ca, "p", "bound", sealed[:5]},
		"nothing":         {ca, "p", "bound", nil},
	} {
		other := Locker{c.ca}
		if text, err := other.Unlock(c.purpose, c.sealed, []byte(c.bound)); err == nil {
			t.Errorf("%s: opened: %q", name, text)
		}
	}
}
