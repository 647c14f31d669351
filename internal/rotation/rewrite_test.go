package rotation

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sealing is a rotation of what encrypts the store.
func sealing(phase Phase) State {
	s := in(phase)
	s.Kind, s.KeepOld = EncryptionKey, metav1.Duration{Duration: EncryptionKeyKept}
	return s
}

// TestTheOldKeyStaysWhileSomethingNeedsIt: the phase in which everything is written again ends when nothing is left, on no member.
func TestTheOldKeyStaysWhileSomethingNeedsIt(t *testing.T) {
	unheld := sealing(Use)
	unheld.HeldSince = nil
	busy := func(name string, s State, left int) Member {
		m := holds(name, s)
		m.Held[1].ToRewrite = left
		return m
	}
	refusing := func(name string, s State) Member {
		m := holds(name, s)
		m.Held[1].Uses, m.Held[1].Problem, m.Held[1].Refuses = "", "its file says more", "do it by hand"
		return m
	}
	backFromTrust, _, err := sealing(Trust).Abort(now)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		state   State
		members []Member
		want    string
	}{
		"both have some":     {unheld, []Member{busy("x", unheld, 7), busy("y", unheld, 9)}, "the leader: it has 9 objects to write again with the new one"},
		"one has some":       {sealing(Use), []Member{busy("x", sealing(Use), 0), busy("y", sealing(Use), 1)}, "anew, the leader: it has 1 objects to write again"},
		"one is away":        {sealing(Use), []Member{busy("x", sealing(Use), 0), {Name: "y", Silent: "it does not answer"}}, "anew, y: it does not answer"},
		"one has its own":    {sealing(Trust), []Member{refusing("x", sealing(Trust))}, "x: do it by hand"},
		"of the way back":    {backFromTrust, []Member{refusing("x", backFromTrust), busy("y", backFromTrust, 0)}, "done"},
		"not used by one":    {unheld, []Member{busy("x", unheld, 7), busy("y", sealing(Trust), 0)}, "y: it has not taken the change yet, the leader: it has 7"},
		"nobody has any":     {unheld, []Member{busy("x", unheld, 0), busy("y", unheld, 0)}, "held"},
		"none for long":      {sealing(Use), []Member{busy("x", sealing(Use), 0)}, "drop"},
		"trusted, not used":  {sealing(Trust), []Member{busy("x", sealing(Trust), 0)}, "use"},
		"one cannot drop it": {sealing(Drop), []Member{{Name: "x", Held: []Held{{Kind: EncryptionKey, Problem: "it has 2 objects that only the old one can read"}}}}, "x: it has 2 objects"},
	} {
		step := c.state.Plan(c.members, now)
		got := string(step.Next)
		if step.Held {
			got = "held"
		}
		if step.Broken {
			got = "anew, "
		}
		var waits []string
		for _, w := range step.Waits {
			waits = append(waits, w.Member+": "+w.Why)
		}
		if got += strings.Join(waits, ", "); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestKeysStayInTheState: a server that finds something of the old key in the last phase still gets it.
func TestKeysStayInTheState(t *testing.T) {
	keys := Keys{"a": []byte("old"), "b": []byte("new"), "z": []byte("stranger")}
	for want, s := range map[string]State{
		"a b": sealing(Trust), "a b ": sealing(Use), "a b  ": sealing(Drop), "a b   ": sealing(Done), "b ": in(Drop), "b  ": in(Done),
	} {
		needed := s.Needed(keys)
		var got []string
		for _, id := range []string{"a", "b", "z"} {
			if needed[id] != nil {
				got = append(got, id)
			}
		}
		if strings.Join(got, " ") != strings.TrimSpace(want) {
			t.Errorf("%s %s: %v, want %s", s.Kind, s.Phase, got, want)
		}
	}
}

// TestHowLongTheOldOneIsKept: never shorter than a write may take.
func TestHowLongTheOldOneIsKept(t *testing.T) {
	for keep, want := range map[time.Duration]error{
		0: ErrKeptShort, EncryptionKeyKept - 1: ErrKeptShort, -1: ErrKept, EncryptionKeyKept: nil, KeptMax: nil, KeptMax + 1: ErrKept,
	} {
		if _, _, err := (State{}).Begin(EncryptionKey, "a", "b", &keep, now); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", keep, err, want)
		}
	}
	if s, _, err := (State{}).Begin(EncryptionKey, "a", "b", nil, now); err != nil || s.KeepOld.Duration != EncryptionKeyKept || s.Phase != Trust {
		t.Errorf("as usual: %+v, %v", s, err)
	}
}

// TestSettingsThatRefuse: who encrypts by a file of his own is told which member has it.
func TestSettingsThatRefuse(t *testing.T) {
	members := []Member{holds("x", sealing(Trust)), holds("y", sealing(Trust))}
	members[1].Held[1].Refuses = "do it by hand"
	err := Follows(EncryptionKey, members)
	if !errors.Is(err, ErrRefused) || fmt.Sprint(err) != "the servers cannot rotate it here: y: do it by hand" {
		t.Error(err)
	}
	if err := Follows(EncryptionKey, members[:1]); err != nil {
		t.Error(err)
	}
}
