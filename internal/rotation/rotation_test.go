package rotation

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/trust"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// in is a rotation from a to b.
func in(phase Phase) State {
	return State{
		Kind: AccountKey, Generation: 3, Phase: phase, From: "a", To: "b", Started: now.Add(-time.Hour), Since: now.Add(-time.Hour),
		KeepOld: metav1.Duration{Duration: time.Minute}, HeldSince: new(now.Add(-time.Hour)), HeldIn: "life",
	}
}

// back is the way back from b to a.
func back(phase Phase) State {
	s := in(phase)
	s.From, s.To, s.Aborted = s.To, s.From, true
	return s
}

// holds is a member that has done what the state wants.
func holds(name string, s State) Member {
	uses, trusts := s.Wanted()
	return Member{Name: name, Held: []Held{{Kind: CA}, {Kind: s.Kind, Generation: s.Generation, Uses: uses, Trusts: trusts}}}
}

// TestEachPhaseWaitsForAll: a phase ends when all have said so, and not before; the old one is kept as long as was ordered.
func TestEachPhaseWaitsForAll(t *testing.T) {
	kept := in(Use)
	kept.KeepOld.Duration = 2 * time.Hour
	publish, published := in(Trust), in(Trust)
	publish.KeepOld.Duration, published.KeepOld.Duration = 25*time.Hour, 25*time.Hour
	publish.HeldSince = new(now.Add(-time.Hour / 2))
	unheld, restored := in(Use), in(Use).Of("another life")
	unheld.HeldSince = nil
	serving := in(Use)
	serving.Kind, serving.KeepOld.Duration = Serving, time.Hour*24
	broken := holds("y", in(Trust))
	broken.Held[1].Problem = "its disk is full"
	elsewhere := holds("y", in(Trust))
	elsewhere.Held[1].Generation--
	for name, c := range map[string]struct {
		state   State
		members []Member
		want    string
	}{
		"trusted":                {in(Trust), []Member{holds("x", in(Trust)), holds("y", in(Trust))}, "use"},
		"used":                   {in(Use), []Member{holds("x", in(Use)), holds("y", in(Use))}, "drop"},
		"dropped":                {in(Drop), []Member{holds("x", in(Drop)), holds("y", in(Drop))}, "done"},
		"done":                   {in(Done), []Member{holds("x", in(Trust))}, ""},
		"never":                  {State{}, []Member{holds("x", in(Trust))}, ""},
		"nobody":                 {in(Trust), nil, ""},
		"not trusted by one":     {in(Trust), []Member{holds("x", in(Trust)), holds("y", in(Done))}, " y: it has not taken the change yet"},
		"not used by one":        {in(Use), []Member{holds("x", in(Use)), holds("y", in(Trust))}, " y: it has not taken the change yet"},
		"not dropped by one":     {in(Drop), []Member{holds("x", in(Use)), holds("y", in(Drop))}, " x: it has not taken the change yet"},
		"of an earlier one":      {in(Trust), []Member{elsewhere}, " y: it has not taken the change yet"},
		"away while trusted":     {in(Trust), []Member{holds("x", in(Trust)), {Name: "y", Silent: "no answer"}}, " y: no answer"},
		"away while used":        {in(Use), []Member{holds("x", in(Use)), {Name: "y", Silent: "no answer"}}, " y: no answer"},
		"away while dropped":     {in(Drop), []Member{holds("x", in(Drop)), {Name: "y", Silent: "no answer"}}, " y: no answer"},
		"too old":                {in(Trust), []Member{{Name: "y"}}, " y: its release cannot rotate sa-key: upgrade it"},
		"cannot":                 {in(Trust), []Member{broken}, " y: its disk is full"},
		"kept":                   {kept, []Member{holds("x", kept)}, " until 2030-01-01T01:00:00Z"},
		"kept, and one is away":  {kept, []Member{{Name: "y", Silent: "off"}}, " y: off until 2030-01-01T01:00:00Z"},
		"published":              {publish, []Member{holds("x", publish)}, " until 2030-01-01T00:30:00Z"},
		"published for an hour":  {published, []Member{holds("x", published)}, "use"},
		"held by all now":        {unheld, []Member{holds("x", unheld)}, " held"},
		"away for long":          {unheld, []Member{holds("x", unheld), {Name: "y", Silent: "off"}}, " y: off"},
		"held in another life":   {restored, []Member{holds("x", restored)}, " held"},
		"held in this life":      {in(Use).Of("life"), []Member{holds("x", in(Use))}, "drop"},
		"nothing kept":           {serving, []Member{holds("x", serving)}, "done"},
		"back, while used":       {back(Use), []Member{holds("x", back(Use))}, "drop"},
		"back, one uses the new": {back(Use), []Member{holds("x", in(Use))}, " x: it has not taken the change yet"},
		"back, dropped":          {back(Drop), []Member{holds("x", back(Drop))}, "done"},
		"back, away":             {back(Drop), []Member{{Name: "y", Silent: "off"}}, " y: off"},
	} {
		step := c.state.Plan(c.members, now)
		got := string(step.Next)
		for _, w := range step.Waits {
			got += " " + w.Member + ": " + w.Why
		}
		if step.Until != nil {
			got += " until " + at(*step.Until)
		}
		if step.Held {
			got += " held"
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestOneStepAfterTheOther: whatever is ordered when, nobody ever uses what another does not trust, and both ways end.
func TestOneStepAfterTheOther(t *testing.T) {
	for _, abortIn := range []Phase{"", Trust, Use} {
		s, _, err := State{Generation: 2}.Begin(AccountKey, "a", "b", new(time.Duration(0)), now)
		if err != nil {
			t.Fatal(err)
		}
		members := []Member{holds("x", State{Phase: Done, To: "a"}), holds("y", State{Phase: Done, To: "a"})}
		for steps := 0; s.UnderWay(); steps++ {
			if steps > 20 {
				t.Fatalf("aborted in %q: it does not end: %+v", abortIn, s)
			}
			for i := range members { // one after the other takes the change
				members[i] = holds(members[i].Name, s)
				checkTrusted(t, members)
				if next := s.Plan(members, now).Next; next != "" && i == 0 {
					t.Fatalf("aborted in %q: %s begins, and one has not taken %s", abortIn, next, s.Phase)
				}
			}
			if s.Phase == abortIn && !s.Aborted {
				if s, _, err = s.Abort(now); err != nil {
					t.Fatal(err)
				}
				continue
			}
			s = s.In(s.Plan(members, now).Next, now)
		}
		want := map[bool]string{true: "a", false: "b"}[s.Aborted]
		if uses, trusts := s.Wanted(); uses != want || len(trusts) != 1 || s.Generation != 3 {
			t.Errorf("aborted in %q: ended with %+v", abortIn, s)
		}
	}
}

// checkTrusted fails if a member uses what another does not trust.
func checkTrusted(t *testing.T, members []Member) {
	t.Helper()
	for _, m := range members {
		for _, other := range members {
			uses := m.Held[1].Uses
			if !strings.Contains(" "+strings.Join(other.Held[1].Trusts, " ")+" ", " "+uses+" ") {
				t.Fatalf("%s uses %q, and %s trusts %v", m.Name, uses, other.Name, other.Held[1].Trusts)
			}
		}
	}
}

// TestOrders: what each order makes of each phase.
func TestOrders(t *testing.T) {
	begin := func(keep *time.Duration) func(State) (State, bool, error) {
		return func(s State) (State, bool, error) { return s.Begin(AccountKey, "b", "c", keep, now) }
	}
	abort := func(s State) (State, bool, error) { return s.Abort(now) }
	serving := in(Use)
	serving.Kind = Serving
	for name, c := range map[string]struct {
		order func(State) (State, bool, error)
		state State
		want  string
	}{
		"begin":                       {begin(nil), State{}, "1 trust b>c kept 25h0m0s changed"},
		"begin, after another":        {begin(new(time.Minute)), in(Done), "4 trust b>c kept 1m0s changed"},
		"begin twice":                 {begin(nil), in(Trust), "3 trust a>b kept 1m0s"},
		"begin twice, kept otherwise": {begin(new(time.Second)), in(Use), "3 use a>b kept 1s changed"},
		"begin on the way back":       {begin(nil), back(Use), "3 use b>a kept 1m0s"},
		"begin, kept too long":        {begin(new(KeptMax + 1)), State{}, ErrKept.Error()},
		"begin, kept too short":       {begin(new(-time.Second)), in(Use), ErrKept.Error()},
		"abort while trusted":         {abort, in(Trust), "3 drop b>a kept 1m0s changed"},
		"abort while used":            {abort, in(Use), "3 use b>a kept 1m0s changed"},
		"abort while dropped":         {abort, in(Drop), ErrTooLate.Error()},
		"abort twice":                 {abort, back(Drop), "3 drop b>a kept 1m0s"},
		"abort when done":             {abort, in(Done), ErrNothing.Error()},
		"abort nothing":               {abort, State{}, ErrNothing.Error()},
		"abort of certificates":       {abort, serving, "3 done a>b kept 1m0s changed"},
	} {
		s, changed, err := c.order(c.state)
		got := fmt.Sprintf("%d %s %s>%s kept %s", s.Generation, s.Phase, s.From, s.To, s.KeepOld.Duration)
		if changed {
			got += " changed"
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if _, _, err := (State{}).Begin(Serving, "", "x", new(time.Second), now); !errors.Is(err, ErrKeepsNothing) {
		t.Errorf("certificates are kept: %v", err)
	}
}

// TestKindsAreRefused: what is not built says what to do instead, and what is none which there are.
func TestKindsAreRefused(t *testing.T) {
	for _, k := range Kinds() {
		built := k != Tokens
		if err := k.Validate(); built != (err == nil) || err != nil && (!errors.Is(err, ErrNotBuilt) || instead[k] == "") {
			t.Errorf("%s: %v", k, err)
		}
	}
	if err := Kind("sa").Validate(); !errors.Is(err, ErrKind) || !strings.Contains(err.Error(), "sa-key") {
		t.Errorf("a kind that is none: %v", err)
	}
	older := []Member{{Name: "away", Silent: "off"}, holds("new", in(Trust)), {Name: "old"}}
	if err := Follows(AccountKey, older); !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "old: its release") {
		t.Errorf("a member is too old: %v", err)
	}
	if err := Follows(AccountKey, older[:2]); err != nil {
		t.Errorf("a member is away: %v", err)
	}
}

// TestOnlyServersReadAndWriteTheState: the keys are not in the text, and a text that somebody changed is none.
func TestOnlyServersReadAndWriteTheState(t *testing.T) {
	authority, err := trust.NewCA(now)
	if err != nil {
		t.Fatal(err)
	}
	ca := trust.Locker{CA: authority}
	keys := Keys{"a": []byte("secret of a"), "b": []byte("secret of b")}
	text, err := in(Trust).Text(ca, keys)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "c2VjcmV0") { // or its base64
		t.Errorf("it can be read: %s", text)
	}
	s, read, err := Read(ca, AccountKey, text)
	if err != nil || !cmp.Equal(s, in(Trust)) || !cmp.Equal(read, keys) {
		t.Errorf("got %+v, %v, %v", s, read, err)
	}
	other, err := trust.NewCA(now)
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]func() error{
		"another cluster": func() error { _, _, err := Read(trust.Locker{CA: other}, AccountKey, text); return err },
		"another kind":    func() error { _, _, err := Read(ca, Serving, text); return err },
		"another phase":   func() error { _, _, err := Read(ca, AccountKey, strings.Replace(text, "trust", "drop", 1)); return err },
		"another key": func() error {
			_, _, err := Read(ca, AccountKey, strings.Replace(text, `"to":"b"`, `"to":"e"`, 1))
			return err
		},
		"no seal": func() error {
			_, _, err := Read(ca, AccountKey, `{"state":{"kind":"sa-key","phase":"use"}}`)
			return err
		},
		"no JSON":  func() error { _, _, err := Read(ca, AccountKey, "x"); return err },
		"too long": func() error { _, _, err := Read(ca, AccountKey, strings.Repeat(" ", textBytesMax+1)); return err },
	} {
		if err := wrong(); !errors.Is(err, errState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ofServing(s State) State {
	s.Kind = Serving
	return s
}

// TestItIsTold: one sentence for each state.
func TestItIsTold(t *testing.T) {
	away := []Member{{Name: "y", Silent: "no answer"}}
	for want, p := range map[string]Progress{
		"sa-key was never rotated": {State: State{Kind: AccountKey}},
		"sa-key: rotation 3 is done, and b is used, since 2029-12-31T23:00:00Z": {State: in(Done)},
		"sa-key: rotation 3 was aborted, and a is used as before, since 2029-":  {State: back(Done)},
		"sa-key: rotation 3 of 2029-12-31T23:00:00Z is in the phase use since 2029-12-31T23:00:00Z; it lasts 60s from when all hold it": {
			State: in(Use).Of("another life"),
		},
		"sa-key: rotation 3 of 2029-12-31T23:00:00Z is in the phase trust since 2029-12-31T23:00:00Z; it waits for y: no answer": {
			State: in(Trust), Step: in(Trust).Plan(away, now),
		},
		"serving: rotation 3 is done, and what was made since b is used, since 2029":              {State: ofServing(in(Done))},
		"serving: rotation 3 was aborted at 2029-12-31T23:00:00Z, and what was made is used":      {State: ofServing(back(Done))},
		"sa-key: rotation 3 of 2029-12-31T23:00:00Z is in the phase use, on the way back, since ": {State: back(Use)},
	} {
		if got := p.Line(); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNodesAreWaitedFor: those that a server with whom they have a session names, each once; those that cannot follow keep a rotation from
// being begun.
func TestNodesAreWaitedFor(t *testing.T) {
	s := in(Trust)
	s.Kind = GossipKey
	x, y := holds("x", s), holds("y", s)
	x.Held[1].Nodes = []Lacking{{Node: "n1"}, {Node: "n2"}, {More: 3}}
	y.Held[1].Nodes = []Lacking{{Node: "n2"}, {More: 3}}
	step := s.Plan([]Member{x, y}, now)
	want := []Waiting{{"node n1", notTaken}, {"node n2", notTaken}, {"6 more nodes", "they have not taken the change yet"}}
	if diff := cmp.Diff(want, step.Waits); diff != "" || step.Next != "" {
		t.Errorf("next %q: %s", step.Next, diff)
	}
	if err := Follows(GossipKey, []Member{x, y}); err != nil {
		t.Errorf("nodes that are late: %v", err)
	}
	y.Held[1].Nodes = []Lacking{{Node: "odd", Garbled: true}, {More: 1, TooOld: true}}
	odd := s.Plan([]Member{x, y}, now).Waits
	if !strings.HasPrefix(odd[2].Why, "its agent says what") || odd[3].Member != "4 more nodes" || !strings.HasSuffix(odd[3].Why, tooOld(GossipKey)) {
		t.Errorf("one that says nonsense, and more that are too old: %+v", odd)
	}
	y.Held[1].Nodes = []Lacking{{Node: "old", TooOld: true}}
	if err := Follows(GossipKey, []Member{x, y}); !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "node old: its release cannot rotate gossip-key: upgrade it") {
		t.Errorf("a node that is too old: %v", err)
	}
	x.Held[1].Nodes, y.Held[1].Nodes = nil, nil
	if step := s.Plan([]Member{x, y}, now); step.Next != Use {
		t.Errorf("all hold it: %+v", step)
	}
	told := Progress{State: s, Away: []string{"n7", "n8"}}.Line()
	if !strings.HasSuffix(told, "; away, and not waited for: n7, n8") {
		t.Errorf("told: %s", told)
	}
}
