package rotations

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust/storagekeys"
)

// store is a Sealing of a server whose keys are in memory. What is in force follows with Reload.
type store struct {
	*Sealing
	keys, inForce []storagekeys.Key
	sealed        map[string]int
	followed      chan struct{}
	given         bool
	broken        error
}

func (s *store) Now() ([]storagekeys.Key, error) { return s.keys, s.broken }

func (s *store) Replace(keys []storagekeys.Key) error {
	s.keys = keys
	return s.broken
}

func newStore(keys ...string) *store {
	s := &store{sealed: map[string]int{}, followed: make(chan struct{})}
	for _, name := range keys {
		s.keys = append(s.keys, keyNamed(name))
	}
	s.inForce = s.keys
	s.Sealing = NewSealing(SealingConfig{
		Keys: s, Followed: s.followed, Sealed: func(name string) int { return s.sealed[name] }, IsGiven: func() bool { return s.given },
		InForce: func() []storagekeys.Key { return s.inForce },
		Reload: func(context.Context) error {
			s.inForce = s.keys
			return s.broken
		},
	})
	return s
}

func keyNamed(name string) storagekeys.Key {
	return storagekeys.Key{Name: name, Secret: [storagekeys.KeyBytes]byte{name[0]}}
}

func idOf(name string) string { return keyNamed(name).ID() }

func (s *store) names() string {
	var names []string
	for _, key := range s.inForce {
		names = append(names, key.Name)
	}
	return strings.Join(names, " ")
}

// sealingFrom is a rotation from a to b, and its keys.
func sealingFrom(phase rotation.Phase) (rotation.State, rotation.Keys) {
	keys := rotation.Keys{}
	for _, name := range []string{"a", "b"} {
		text, err := keyNamed(name).Text()
		if err != nil {
			panic(err)
		}
		keys[idOf(name)] = text
	}
	return rotation.State{Kind: rotation.EncryptionKey, Phase: phase, From: idOf("a"), To: idOf("b")}, keys
}

// TestSealing: what each phase makes of the keys; the old one goes when nothing needs it, those that people have added stay.
func TestSealing(t *testing.T) {
	for name, c := range map[string]struct {
		has    []string
		phase  rotation.Phase
		sealed int
		want   string
	}{
		"trusted":                  {[]string{"a"}, rotation.Trust, 5, "a b"},
		"trusted, with a stranger": {[]string{"a", "x"}, rotation.Trust, 5, "a b x"},
		"used":                     {[]string{"a", "b", "x"}, rotation.Use, 5, "b a x"},
		"used, of which it lacked": {[]string{"a"}, rotation.Use, 5, "b a"},
		"dropped":                  {[]string{"b", "a", "x"}, rotation.Drop, 0, "b x"},
		"needed":                   {[]string{"b", "a", "x"}, rotation.Drop, 2, "b a x; it has 2 objects that only the old one can read"},
		"needed, and gone":         {[]string{"b", "x"}, rotation.Drop, 2, "b a x; it has 2 objects that only the old one can read"},
		"done":                     {[]string{"b"}, rotation.Done, 0, "b"},
		"done, before a restore":   {[]string{"c"}, rotation.Done, 0, "b c"},
		"done, and still there":    {[]string{"b", "a", "x"}, rotation.Done, 0, "b x"},
		"done, and needed again":   {[]string{"b", "x"}, rotation.Done, 1, "b a x"},
	} {
		s := newStore(c.has...)
		s.sealed["a"] = c.sealed
		state, keys := sealingFrom(c.phase)
		err := s.Follow(state, keys)
		got := s.names()
		if err != nil {
			got += "; " + err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		uses, trusts := s.Held()
		wantUses, wantTrusts := state.Wanted()
		slices.Sort(trusts)
		slices.Sort(wantTrusts)
		if err == nil && c.phase != rotation.Done && (uses != wantUses || !slices.Equal(trusts, wantTrusts)) {
			t.Errorf("%s: held are %s and %v, want %s and %v", name, uses, trusts, wantUses, wantTrusts)
		}
	}
	lacking := newStore("c")
	state, _ := sealingFrom(rotation.Use)
	if err := lacking.Follow(state, nil); !errors.Is(err, errLacks) || lacking.names() != "c" {
		t.Errorf("without the key: %v, %s", err, lacking.names())
	}
	full := newStore("a")
	full.broken = errors.New("the disk is full")
	state, keys := sealingFrom(rotation.Trust)
	if err := full.Follow(state, keys); !errors.Is(err, full.broken) {
		t.Error(err)
	}
}

// TestWhatASealingTells: how much is to be rewritten while it is, and who encrypts by files of his own.
func TestWhatASealingTells(t *testing.T) {
	s := newStore("a")
	s.sealed["a"] = 3
	tell := func() (held rotation.Held) {
		s.Tell(&held)
		return held
	}
	if held := tell(); held.ToRewrite != 0 || held.Refuses != "" {
		t.Errorf("before: %+v", held)
	}
	state, keys := sealingFrom(rotation.Use)
	if err := s.Follow(state, keys); err != nil {
		t.Fatal(err)
	}
	if held := tell(); held.ToRewrite != 3 {
		t.Errorf("used: %+v", held)
	}
	if s.Key(idOf("b")) == nil || s.Key("other") != nil {
		t.Error("which keys it has")
	}
	s.given = true
	if held := tell(); held.Refuses != givenRefusal {
		t.Errorf("a file of his own: %+v", held)
	}
	s.given, s.inForce = false, nil
	if held := tell(); held.Refuses != ownRefusal {
		t.Errorf("more in the file: %+v", held)
	}
}

// TestNothingIsEncryptedWithAnOldKey: a server that starts waits until it knows which key counts, and refuses all that others cannot read.
func TestNothingIsEncryptedWithAnOldKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore("a")
		if err := s.MayWrite(t.Context(), idOf("a")); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("before it follows: %v", err)
		}
		result := make(chan error)
		go func() { result <- s.MayWrite(t.Context(), idOf("a")) }()
		synctest.Wait()
		close(s.followed)
		if err := <-result; err != nil {
			t.Errorf("there is nothing to follow: %v", err)
		}
		for phase, may := range map[rotation.Phase]string{rotation.Trust: "a", rotation.Use: "a b", rotation.Drop: "b", rotation.Done: "b and its own file"} {
			s := newStore("a")
			go func() { result <- s.MayWrite(t.Context(), idOf("z")) }()
			synctest.Wait()
			state, _ := sealingFrom(phase)
			_ = s.Follow(state, nil) // it lacks the new key, but knows of it
			if err := <-result; !apierrors.IsServiceUnavailable(err) {
				t.Errorf("%s, with a key that nobody has: %v", phase, err)
			}
			for _, name := range []string{"a", "b", ""} {
				id, wanted := "", strings.Contains(may, "file")
				if name != "" {
					id, wanted = idOf(name), slices.Contains(strings.Fields(may), name)
				}
				if err := s.MayWrite(t.Context(), id); wanted != (err == nil) || err != nil && !apierrors.IsServiceUnavailable(err) {
					t.Errorf("%s, with %q: %v", phase, name, err)
				}
			}
		}
	})
}

// TestWhatComesLateIsRead: an object of the old key that is there after all gets it back out of the state, and lets go of it again.
func TestWhatComesLateIsRead(t *testing.T) {
	s := newStore("b")
	state, keys := sealingFrom(rotation.Done)
	check := func(what, want string, changes bool) {
		t.Helper()
		if got := s.Changed(); got != changes {
			t.Errorf("%s: it has to follow again: %v", what, got)
		}
		if err := s.Follow(state, keys); err != nil || s.names() != want || s.Changed() {
			t.Errorf("%s: %s, want %s: %v", what, s.names(), want, err)
		}
	}
	check("at first", "b", false)
	s.sealed["a"] = 2
	check("it came", "b a", true)
	s.sealed["a"] = 0
	check("it is written again", "b", true)
	s.sealed["a"] = 1
	if err := s.Follow(state, rotation.Keys{}); !errors.Is(err, errLacks) || s.names() != "b" {
		t.Errorf("of a release that did not keep it: %v, %s", err, s.names())
	}
}

// TestAKeyThatIsNotInForce: a file that was written and not read is told.
func TestAKeyThatIsNotInForce(t *testing.T) {
	s := newStore("a")
	s.config.Reload = func(context.Context) error { return nil }
	state, keys := sealingFrom(rotation.Use)
	if err := s.Follow(state, keys); !errors.Is(err, errNotInForce) {
		t.Error(err)
	}
}
