package rotation

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestUnsureNodes: of whom no member is sure is waited for, each by one name, and those that are away are told apart.
func TestUnsureNodes(t *testing.T) {
	members := []Member{
		{Name: "a", Held: []Held{{Kind: CA, Sure: []string{"n1"}, Nodes: []Lacking{{Node: "n2"}}}}},
		{Name: "b", Held: []Held{{Kind: CA, Sure: []string{"n3"}}}},
		{Name: "c", Held: []Held{{Kind: CA}}},
	}
	hasLeft := func(node string) bool { return node == "n5" || node == "n6" }
	ended := func(node string) string {
		return map[string]string{"n4": "2030-01-02T03:04:05Z", "n6": "2031-01-02T03:04:05Z"}[node] // n4 lives, and has renewed it elsewhere
	}
	got := Unsure(members, []string{"n6", "n5", "n4", "n3", "n2", "n1"}, hasLeft, ended)
	if len(got) != 3 || got[0] != (Waiting{"node n4", notTaken}) || got[1].Member != "node n5" || got[1].Why == notTaken {
		t.Errorf("it waits for %v", got)
	}
	if why := got[len(got)-1].Why; !strings.Contains(why, "ended at 2031-01-02T03:04:05Z") || !strings.Contains(why, "setpoint token create") {
		t.Errorf("of one whose certificate has ended it says: %s", why)
	}
	members[2] = Member{Name: "c", Silent: "it does not answer"}
	if got := Unsure(members, []string{"n6"}, hasLeft, ended); len(got) != 1 || got[0].Why != isAway {
		t.Errorf("while a member is silent with which it may have renewed its certificate: %v", got)
	}
	if got := (Lacking{Node: "n4", Ended: "2030-01-02T03:04:05Z"}).waiting(CA).Why; got != notTaken {
		t.Errorf("of a node with a session a member says: %s", got)
	}
	var many []string
	for i := range LackingMax + 3 {
		many = append(many, string(rune('a'+i)))
	}
	if got := Unsure(nil, many, hasLeft, ended); len(got) != LackingMax+1 || got[LackingMax].Member != "3 more nodes" {
		t.Errorf("it waits for %v", got)
	}
}

// TestOthersAreWaitedFor beside the members, in each phase, also when the time of the phase is over.
func TestOthersAreWaitedFor(t *testing.T) {
	now := time.Unix(1000, 0)
	s, _, err := (State{}).Begin(CA, "old", "new", nil, now)
	if err != nil || s.KeepOld.Duration != CAKept || s.Phase != Trust {
		t.Fatalf("begun: %+v, %v", s, err)
	}
	other := Waiting{"node n1", isAway}
	for _, phase := range []Phase{Trust, Use, Drop} {
		s = s.In(phase, now)
		uses, trusts := s.Wanted()
		members := []Member{{Name: "a", Held: []Held{{Kind: CA, Generation: 1, Uses: uses, Trusts: trusts}}}}
		if step := s.Plan(members, now, other); step.Next != "" || step.Held || !slices.Equal(step.Waits, []Waiting{other}) {
			t.Errorf("%s: %+v", phase, step)
		}
		if phase == Use {
			if step := s.Plan(members, now); !step.Held {
				t.Errorf("all hold it: %+v", step)
			}
			s = s.Held("", now)
			if step := s.Plan(members, now.Add(CAKept+1), other); step.Next != "" {
				t.Errorf("its time is over: %+v", step)
			}
		}
		if step := s.Plan(members, now.Add(CAKept+1)); step.Next != s.Kind.after(phase) {
			t.Errorf("%s: %+v", phase, step)
		}
	}
}
