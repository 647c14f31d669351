package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const testBeat = 200 * time.Millisecond

// TestWhatEndsTheRhythm: heartbeats are held back after enough of them in time, and no longer after one that was late.
func TestWhatEndsTheRhythm(t *testing.T) {
	const usual, longest, slack = 75 * time.Millisecond, testBeat / 2, testBeat / 8
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		inTime              int           // heartbeats before the last
		asked, waited, took time.Duration // after the last answer, beyond what was due, and until the answer
		err                 error
		held                bool
	}{
		"enough in time":          {steadyBeats, usual, slack, slack, nil, true},
		"not yet":                 {steadyBeats - 2, usual, 0, 0, nil, false},
		"asked for late":          {steadyBeats, longest + slack + 1, 0, 0, nil, false},
		"asked for nearly late":   {steadyBeats, longest + slack, 0, 0, nil, true},
		"sent late":               {steadyBeats, usual, slack + 1, 0, nil, false},
		"sent before it was due":  {steadyBeats, usual, -testBeat / 4, 0, nil, true},
		"answered late":           {steadyBeats, usual, 0, slack + 1, nil, false},
		"not answered":            {steadyBeats, usual, 0, 0, errors.New("cut"), false},
		"the first of all":        {0, usual, 0, 0, nil, false},
		"late, and in time since": {2 * steadyBeats, usual, 0, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := rhythm{}
			now := start
			for range c.inTime + 1 { // the first is late: there was none before
				now = now.Add(usual)
				r.note(heartbeat{now, now, now, now}, nil, testBeat)
			}
			asked := now.Add(c.asked)
			due := r.due(asked, testBeat)
			sent := due.Add(c.waited)
			now = sent.Add(c.took)
			r.note(heartbeat{asked, due, sent, now}, c.err, testBeat)
			if pause := r.due(now, testBeat).Sub(now); pause > 0 != c.held || pause > testBeat {
				t.Errorf("held back for %v, want held %v", pause, c.held)
			}
			if due := r.due(now, 0); due != now {
				t.Errorf("without a beat it is held back for %v", due.Sub(now))
			}
		})
	}
}

// line is a leader's transport and followers that note when a heartbeat reaches them, and answer after delay.
type line struct {
	*Transport
	mu    sync.Mutex
	at    map[raft.ServerID][]time.Duration
	delay time.Duration
}

func newLine(t *testing.T) *line {
	l := &line{at: map[raft.ServerID][]time.Duration{}}
	start := time.Now()
	follower := func(id raft.ServerID) *Transport {
		return New(Config{
			ID: string(id), Address: string(id), Logger: slog.New(slog.DiscardHandler), Raft: hclog.NewNullLogger(),
			Follows: func(uint64) bool {
				l.mu.Lock()
				delay := l.delay
				l.at[id] = append(l.at[id], time.Since(start))
				l.mu.Unlock()
				time.Sleep(delay)
				return true
			},
			Stopped: func() error { return nil },
		})
	}
	followers := map[string]*Transport{"b": follower("b"), "c": follower("c")}
	l.Transport = New(Config{
		ID: "a", Address: "a", Beat: testBeat, Logger: slog.New(slog.DiscardHandler), Raft: hclog.NewNullLogger(),
		Name:      func(id string) string { return id },
		Addresses: func(id string) ([]string, error) { return []string{id}, nil },
		Dial: func(_ context.Context, address, _ string) (net.Conn, error) {
			near, far := net.Pipe()
			go followers[address].HandleConn(far)
			return near, nil
		},
	})
	t.Cleanup(func() {
		l.Transport.stop()
		for _, f := range followers {
			f.stop()
		}
	})
	return l
}

// beats sends heartbeats to both followers as raft does, each with a pause of its own, until ctx ends.
func (l *line) beats(ctx context.Context, t *testing.T) *sync.WaitGroup {
	return l.beatsAfter(ctx, t, map[raft.ServerID]time.Duration{"b": 61 * time.Millisecond, "c": 83 * time.Millisecond})
}

func (l *line) beatsAfter(ctx context.Context, t *testing.T, pauses map[raft.ServerID]time.Duration) *sync.WaitGroup {
	running := &sync.WaitGroup{}
	for id, pause := range pauses {
		running.Go(func() {
			for ctx.Err() == nil {
				request := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{Addr: []byte("a")}, Term: 5}
				if err := l.AppendEntries(id, "", request, &raft.AppendEntriesResponse{}); err != nil {
					t.Error(err)
				}
				time.Sleep(pause)
			}
		})
	}
	return running
}

// since are the heartbeats that reached the followers from then on.
func (l *line) since(then int) map[raft.ServerID][]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[raft.ServerID][]time.Duration{}
	for id, all := range l.at {
		first := slices.IndexFunc(all, func(at time.Duration) bool { return at >= time.Duration(then)*time.Second })
		out[id] = slices.Clone(all[max(first, 0):])
	}
	return out
}

// TestHeartbeatsOfACalmLeader reach all followers at the same moments, five a second; as soon as answers are late they come at
// raft's own pace, and when all is well again at the beat.
func TestHeartbeatsOfACalmLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		ctx, cancel := context.WithCancel(t.Context())
		running := l.beats(ctx, t)
		slow := func(delay time.Duration) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.delay = delay
		}
		const second = time.Second
		time.Sleep(10*second + testBeat/2)
		calm := l.since(8)
		if n := len(calm["b"]); n != 11 && n != 12 || !slices.Equal(calm["b"], calm["c"]) {
			t.Errorf("calm: %v", calm)
		}
		slow(30 * time.Millisecond)
		time.Sleep(10 * second)
		if n := len(l.since(18)["b"]); n < 2*10 {
			t.Errorf("while answers are late: %d heartbeats in two seconds", n)
		}
		slow(0)
		time.Sleep(10 * second)
		if again := l.since(28); len(again["b"]) > 12 || !slices.Equal(again["b"], again["c"]) {
			t.Errorf("calm again: %v", again)
		}
		cancel()
		running.Wait()
	})
}

// TestAMachineThatStalls for 100 ms before each heartbeat to one follower holds none of them back: its own are rare enough. The other's
// rhythm is its own.
func TestAMachineThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		ctx, cancel := context.WithCancel(t.Context())
		running := l.beatsAfter(ctx, t, map[raft.ServerID]time.Duration{"b": 161 * time.Millisecond, "c": 83 * time.Millisecond})
		time.Sleep(20*time.Second + testBeat/2)
		for i, at := range l.since(15)["b"][1:] {
			if gap := at - l.since(15)["b"][i]; gap != 161*time.Millisecond {
				t.Errorf("held back: %v apart", gap)
			}
		}
		if n := len(l.since(18)["c"]); n > 12 {
			t.Errorf("to the other: %d heartbeats in two seconds", n)
		}
		cancel()
		running.Wait()
	})
}

// TestAStepOfTheClock: after one, heartbeats that wait are due at different moments, and all are sent when the first of them is.
func TestAStepOfTheClock(t *testing.T) {
	const usual = testBeat // when a heartbeat is due that follows one at the start
	for _, other := range []time.Duration{usual * 3 / 4, usual, usual * 5 / 4} {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t)
			began := time.Now() // a whole multiple
			l.held = l.newWait(began.Add(other))
			another := l.held.over
			l.rhythms["b"] = &rhythm{inTime: steadyBeats, last: heartbeat{sent: began}}
			l.holdBack("b", began)
			if waited := time.Since(began); waited != min(usual, other) {
				t.Errorf("due after %v, another that waited after %v: sent after %v", usual, other, waited)
			}
			select {
			case <-another:
			default:
				t.Error("the other still waits")
			}
			time.Sleep(testBeat)
			if l.Transport.mu.Lock(); l.held != nil {
				t.Error("something waits that nothing ends")
			}
			l.Transport.mu.Unlock()
		})
	}
}

// TestWhoIsInAHurry: heartbeats that wait are sent at once when somebody needs their answers, and none waits until he has them.
func TestWhoIsInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		ctx, cancel := context.WithCancel(t.Context())
		running := l.beats(ctx, t)
		time.Sleep(10*time.Second + 3*testBeat/4) // both wait now
		before := len(l.since(0)["b"])
		_ = l.InHurry(func() error {
			synctest.Wait()
			if n := len(l.since(0)["b"]) - before; n != 1 {
				t.Errorf("at once: %d heartbeats", n)
			}
			time.Sleep(time.Second)
			if n := len(l.since(0)["b"]) - before; n < 1000/61 {
				t.Errorf("in a second of hurry: %d heartbeats", n)
			}
			return nil
		})
		time.Sleep(testBeat)
		before = len(l.since(0)["b"])
		time.Sleep(time.Second)
		if n := len(l.since(0)["b"]) - before; n > 6 {
			t.Errorf("in the second after it: %d heartbeats", n)
		}
		cancel()
		running.Wait()
	})
}

// TestALeavingServerHoldsNothingBack: raft waits for its heartbeats when it shuts down.
func TestALeavingServerHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		began := time.Now()
		l.rhythms["b"] = &rhythm{inTime: steadyBeats, last: heartbeat{sent: began}}
		l.Leave()
		l.holdBack("b", began)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited %v", waited)
		}
	})
}
