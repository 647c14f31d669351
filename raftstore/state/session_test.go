package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func openSession() command.Command {
	return command.Command{Ops: []command.Op{{Kind: command.OpenSession}}}
}

func inSession(session, sequence uint64, op command.Op) command.Command {
	return command.Command{Session: session, Sequence: sequence, Ops: []command.Op{op}}
}

func TestRetryGetsTheFirstResult(t *testing.T) {
	l := newLog(state.Options{})
	session := l.apply(openSession())[0].Revision
	create := inSession(session, 1, absent(put("a", "1")))
	first := l.apply(create)[0]
	failure := l.apply(inSession(session, 2, absent(put("a", "2"))))[0]
	l.mustOp(t, del("a"))
	// Without the session's memory the retry would create again, and the failed
	// command would now succeed.
	if diff := cmp.Diff(first, l.apply(create)[0]); diff != "" {
		t.Errorf("retry: %s", diff)
	}
	if diff := cmp.Diff(failure, l.apply(inSession(session, 2, absent(put("a", "2"))))[0]); diff != "" {
		t.Errorf("retry of a failure: %s", diff)
	}
	if l.Root().Len() != 0 {
		t.Error("a retry took effect")
	}
}

func TestRetryInTheSameEntry(t *testing.T) {
	l := newLog(state.Options{})
	session := l.apply(openSession())[0].Revision
	c := inSession(session, 9, put("a", "1"))
	results := l.apply(c, c)
	if results[0].Revision != 1 || results[1].Revision != 1 || l.Root().Revision != 1 {
		t.Errorf("results %+v, store at %d", results, l.Root().Revision)
	}
}

func TestStaleFenceIsRemembered(t *testing.T) {
	l := newLog(state.Options{})
	session := l.apply(openSession())[0].Revision
	c := inSession(session, 1, put("a", "1"))
	c.Fence = l.term + 1
	l.apply(c)
	l.term++
	if got := l.apply(c)[0]; got.Code != command.FenceStale {
		t.Errorf("retry of a refused command: %v", got.Code)
	}
}

func TestWindow(t *testing.T) {
	l := newLog(state.Options{})
	session := l.apply(openSession())[0].Revision
	code := func(sequence uint64) command.Code { return l.apply(inSession(session, sequence, put("a", "")))[0].Code }
	const high = 3 * state.SessionWindow
	code(high)
	cases := []struct {
		sequence uint64
		want     command.Code
		changes  bool
	}{
		{high - state.SessionWindow, command.TooOld, false},
		{0, command.TooOld, false},
		{high - state.SessionWindow + 1, command.OK, true},
		{high - 5, command.OK, true},
		{high - 5, command.OK, false},
		{high + 1, command.OK, true},
		{high - state.SessionWindow + 1, command.TooOld, false},
	}
	for i, c := range cases {
		before := l.Root().Revision
		if got := code(c.sequence); got != c.want || (l.Root().Revision > before) != c.changes {
			t.Errorf("case %d, sequence %d: %v, revision %d to %d", i, c.sequence, got, before, l.Root().Revision)
		}
	}
}

func TestSessionIDs(t *testing.T) {
	l := newLog(state.Options{})
	l.index = 40
	results := l.apply(openSession(), openSession())
	if results[0].Revision != 41 || results[1].Revision != 42 {
		t.Errorf("ids %d, %d", results[0].Revision, results[1].Revision)
	}
	if id := l.apply(openSession())[0].Revision; id != 43 {
		t.Errorf("next entry opens %d, want a new id", id)
	}
}

func TestUnknownSession(t *testing.T) {
	l := newLog(state.Options{})
	if got := l.apply(inSession(7, 1, put("a", "")))[0]; got.Code != command.SessionUnknown {
		t.Errorf("never opened: %v", got.Code)
	}
	session := l.apply(openSession())[0].Revision
	l.mustOp(t, command.Op{Kind: command.CloseSession, Revision: session})
	l.mustOp(t, command.Op{Kind: command.CloseSession, Revision: session})
	if got := l.apply(inSession(session, 1, put("a", "")))[0]; got.Code != command.SessionUnknown {
		t.Errorf("closed: %v", got.Code)
	}
	if l.Root().Len() != 0 {
		t.Error("a command without session took effect")
	}
}

func TestLongestUnusedSessionMakesRoom(t *testing.T) {
	l := newLog(state.Options{})
	var ids []uint64
	for range state.MaxSessions {
		ids = append(ids, l.apply(openSession())[0].Revision)
	}
	l.apply(inSession(ids[0], 1, put("a", "")))
	l.apply(openSession())
	if got := l.apply(inSession(ids[0], 2, put("a", "")))[0]; got.Code != command.OK {
		t.Errorf("session in use: %v", got.Code)
	}
	if got := l.apply(inSession(ids[1], 1, put("a", "")))[0]; got.Code != command.SessionUnknown {
		t.Errorf("longest unused session: %v", got.Code)
	}
	if got := l.apply(inSession(ids[2], 1, put("a", "")))[0]; got.Code != command.OK {
		t.Errorf("next session: %v", got.Code)
	}
}

// TestARetryWithinTheWindowTakesEffectOnce: a command whose answer was lost may be sent again after as many later ones
// as the window has; until the session says TooOld, it remembers.
func TestARetryWithinTheWindowTakesEffectOnce(t *testing.T) {
	l := newLog(state.Options{})
	session := l.apply(openSession())[0].Revision
	straggler := inSession(session, 1, put("a", "straggler"))
	first := l.apply(straggler)[0]
	l.mustOp(t, put("a", "newer")) // somebody else has overwritten it since
	for n := uint64(2); n <= state.SessionWindow; n++ {
		l.apply(inSession(session, n, put("b", "")))
		if n == state.SessionWindow/2 || n == state.SessionWindow {
			if diff := cmp.Diff(first, l.apply(straggler)[0]); diff != "" {
				t.Fatalf("the retry after %d commands is judged again: %s", n, diff)
			}
		}
	}
	l.apply(inSession(session, state.SessionWindow+1, put("b", "")))
	if got := l.apply(straggler)[0]; got.Code != command.TooOld {
		t.Errorf("beyond the window: %v", got.Code)
	}
	if r, _ := l.Root().Get("a"); string(r.Value) != "newer" {
		t.Errorf("a is %q: a retry took effect", r.Value)
	}
}
