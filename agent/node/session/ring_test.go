package session

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb"
)

// ringed is who holds a ring, of which a key is its own name.
type ringed struct {
	mu     sync.Mutex
	label  string
	keys   []string
	stuck  bool // it takes none
	taken  int
	hidden map[string]bool // from these nodes
}

func (r *ringed) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *ringed) held() RingHeld {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RingHeld{r.label, slices.Clone(r.keys)}
}

func (r *ringed) take(told Ring) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken++
	if r.stuck {
		return
	}
	r.label, r.keys = told.Label, nil
	for _, key := range told.Keys {
		r.keys = append(r.keys, string(key))
	}
}

func (r *ringed) tell(node string) (*Ring, RingHeld) {
	held := r.held()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hidden[node] {
		return nil, RingHeld{}
	}
	ring := &Ring{Label: held.Label}
	for _, id := range held.IDs {
		ring.Keys = append(ring.Keys, []byte(id))
	}
	return ring, held
}

// TestRings: agents hold what their server holds within a ping, say so, and are told of nothing that they have; who is shut out is told
// nothing, who cannot follow is named, and who cannot take it is asked no faster than it pings.
func TestRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		server := &ringed{label: "l", keys: []string{"one"}, hidden: map[string]bool{"revoked": true}}
		n.rings = map[string]*ringed{"s1": server}
		for _, name := range []string{"n1", "stuck", "revoked"} {
			n.rings[name] = &ringed{label: "l", keys: []string{"one"}}
		}
		n.rings["stuck"].stuck = true
		s := n.server("s1", "s1")
		for _, name := range []string{"n1", "stuck", "revoked", "old"} {
			n.agent(name, "s1")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n.rings["n1"].taken != 0 {
			t.Error("it is told what it has")
		}
		for i, keys := range [][]string{{"one", "two"}, {"two", "one"}, {"two"}} {
			server.set(func() { server.keys = keys })
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if got := n.rings["n1"].held(); !got.equal(server.held()) || n.rings["n1"].taken != i+1 {
				t.Errorf("it holds %v and was told %d times, want %v", got, n.rings["n1"].taken, keys)
			}
			want := []Reported{
				{Node: "n1", Held: server.held()}, {Node: "old"},
				{Node: "revoked", Held: RingHeld{"l", []string{"one"}}}, {Node: "stuck", Held: RingHeld{"l", []string{"one"}}},
			}
			if diff := cmp.Diff(want, s.service.Reports()); diff != "" {
				t.Error(diff)
			}
		}
		if told := n.rings["stuck"].taken; told > 6 {
			t.Errorf("one that cannot take it was asked %d times in 12 s", told)
		}
	})
}

// TestARingMeanwhile: an agent that was away while keys were replaced holds the newest with its first session.
func TestARingMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.rings = map[string]*ringed{"s1": {label: "l", keys: []string{"three"}}, "n1": {label: "l", keys: []string{"one"}}}
		s := n.server("s1", "s1")
		n.agent("n1", "s1")
		s.expect(t, time.Second, "n1", Alive)
		if got := n.rings["n1"].held(); !slices.Equal(got.IDs, []string{"three"}) {
			t.Errorf("it holds %v", got)
		}
	})
}

// TestARingIsPrintedWithoutItsKeys in each way.
func TestARingIsPrintedWithoutItsKeys(t *testing.T) {
	ring := Ring{Label: "l", Keys: [][]byte{[]byte("secret")}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("told", "ring", ring)
	text := fmt.Sprintf("%v %+v %#v %s %v", ring, ring, ring, ring, &ring) + log.String()
	if strings.Count(text, "l, 1 keys") != 6 {
		t.Errorf("printed: %s", text)
	}
}

// TestBoundedRings: a report that is longer than any is garbled, which is not the same as none.
func TestBoundedRings(t *testing.T) {
	long := strings.Repeat("x", ringNameBytesMax+1)
	for name, c := range map[string]struct {
		message *sessionpb.KeepRequest
		want    int
	}{
		"good":            {&sessionpb.KeepRequest{GossipLabel: "l", GossipKeyIds: []string{"a", "b"}}, 2},
		"too many":        {&sessionpb.KeepRequest{GossipLabel: "l", GossipKeyIds: slices.Repeat([]string{"a"}, ringKeysMax+1)}, 0},
		"a long name":     {&sessionpb.KeepRequest{GossipLabel: "l", GossipKeyIds: []string{long}}, 0},
		"a long label":    {&sessionpb.KeepRequest{GossipLabel: long, GossipKeyIds: []string{"a"}}, 0},
		"of older agents": {&sessionpb.KeepRequest{}, 0},
	} {
		if got, garbled := ringHeldOf(c.message); len(got.IDs) != c.want || garbled != (name != "good" && name != "of older agents") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
