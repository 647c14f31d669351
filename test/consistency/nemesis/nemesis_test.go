package nemesis

import (
	"context"
	"errors"
	"testing"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// none is a cluster that can nothing and does not run.
type none struct{ cluster.Cluster }

func (none) Can(cluster.Ability) bool { return false }

// all can everything.
type all struct{ cluster.Cluster }

func (all) Can(cluster.Ability) bool { return true }

func TestSelect(t *testing.T) {
	if got := len(Select(all{}, nil)); got != len(All()) {
		t.Errorf("%d of %d faults", got, len(All()))
	}
	for _, fault := range Select(none{}, nil) {
		if len(fault.Needs()) > 0 {
			t.Errorf("%s needs %v", fault.Name(), fault.Needs())
		}
	}
	if got := Select(all{}, []string{"kill", "ring"}); len(got) != 5 {
		t.Errorf("%d faults are called kill... or ring", len(got))
	}
}

// TestDeck: each fault comes once before any comes twice, in an order of the seed's.
func TestDeck(t *testing.T) {
	a, b := New(all{}, history.NewClock(), All(), 1, t.Logf), New(all{}, history.NewClock(), All(), 1, t.Logf)
	seen := map[string]int{}
	for range 2 * len(All()) {
		fault := a.next().Name()
		if again := b.next().Name(); again != fault {
			t.Fatalf("the same seed chose %s and %s", fault, again)
		}
		seen[fault]++
	}
	for name, times := range seen {
		if times != 2 {
			t.Errorf("%s came %d times in two rounds", name, times)
		}
	}
}

func TestShapes(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		shape   func(context.Context, *Field) []cluster.Pair
		servers int
		pairs   int
	}{
		"isolate": {isolateAny, 3, 4}, "leader": {isolateLeader, 3, 4}, "deaf": {deafLeader, 3, 2}, "mute": {muteLeader, 3, 2},
		"bridge": {bridge, 3, 2}, "ring": {ring, 3, 3},
		"one of five": {isolateAny, 5, 8}, "two of five": {isolateMinority, 5, 12}, "halves": {bridge, 5, 8}, "ring of five": {ring, 5, 15},
	} {
		f := New(down{servers: c.servers}, history.NewClock(), nil, 1, t.Logf).field
		pairs := c.shape(ctx, f)
		seen := map[cluster.Pair]bool{}
		for _, pair := range pairs {
			if seen[pair] = true; pair.From == pair.To {
				t.Errorf("%s: %v", name, pair)
			}
		}
		if len(seen) != c.pairs {
			t.Errorf("%s: %v, want %d pairs", name, pairs, c.pairs)
		}
	}
}

// down is a cluster of which no server runs.
type down struct {
	cluster.Cluster
	servers int
}

func (d down) Size() int      { return d.servers }
func (down) Running(int) bool { return false }
func (down) Start(int) error  { return errors.New("broken") }
