package nemesis

import (
	"context"
	"fmt"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// cut drops packets between servers; clients reach all of them.
type cut struct {
	name  string
	shape func(ctx context.Context, f *Field) []cluster.Pair
	needs []cluster.Ability // beside a network
}

func (c *cut) Name() string { return c.name }
func (c *cut) Needs() []cluster.Ability {
	return append([]cluster.Ability{cluster.Network}, c.needs...)
}

func (c *cut) Start(ctx context.Context, f *Field) (string, error) {
	pairs := c.shape(ctx, f)
	text := ""
	for _, pair := range pairs {
		text += fmt.Sprintf(" %d-/->%d", pair.From+1, pair.To+1)
	}
	return text[1:], f.Cut(pairs)
}

func (*cut) Stop(_ context.Context, f *Field) error { return f.Mend() }

// others are all servers but one, from the next one on.
func (f *Field) others(i int) []int {
	var all []int
	for step := 1; step < f.Size(); step++ {
		all = append(all, (i+step)%f.Size())
	}
	return all
}

// between are all directions from one group of servers to another.
func between(from, to []int) []cluster.Pair {
	var pairs []cluster.Pair
	for _, a := range from {
		for _, b := range to {
			pairs = append(pairs, cluster.Pair{From: a, To: b})
		}
	}
	return pairs
}

// apart are both directions between two groups.
func apart(one, other []int) []cluster.Pair {
	return append(between(other, one), between(one, other)...)
}

func isolateLeader(ctx context.Context, f *Field) []cluster.Pair {
	one := leader(ctx, f)
	return apart(one, f.others(one[0]))
}

func isolateAny(ctx context.Context, f *Field) []cluster.Pair {
	one := anyone(ctx, f)
	return apart(one, f.others(one[0]))
}

// isolateMinority cuts the leader off together with as many others as may be missing.
func isolateMinority(ctx context.Context, f *Field) []cluster.Pair {
	few := minority(ctx, f)
	return apart(few, f.others(few[0])[len(few)-1:])
}

// deafLeader: its heartbeats arrive, the answers do not.
func deafLeader(ctx context.Context, f *Field) []cluster.Pair {
	one := leader(ctx, f)
	return between(f.others(one[0]), one)
}

// muteLeader: it hears the others, they do not hear it.
func muteLeader(ctx context.Context, f *Field) []cluster.Pair {
	one := leader(ctx, f)
	return between(one, f.others(one[0]))
}

// bridge: two halves reach each other only through one server.
func bridge(ctx context.Context, f *Field) []cluster.Pair {
	ends := f.others(anyone(ctx, f)[0])
	return apart(ends[:len(ends)/2], ends[len(ends)/2:])
}

// ring: each server reaches only the next one, in one direction.
func ring(_ context.Context, f *Field) []cluster.Pair {
	var pairs []cluster.Pair
	for i := range f.Size() {
		pairs = append(pairs, between([]int{i}, f.others(i)[1:])...)
	}
	return pairs
}

const losePercent = 30

// lose drops packets at random.
type lose struct{}

func (*lose) Name() string             { return "loss" }
func (*lose) Needs() []cluster.Ability { return []cluster.Ability{cluster.Network} }

func (*lose) Start(_ context.Context, f *Field) (string, error) {
	return fmt.Sprintf("%d %% of all packets between servers", losePercent), f.Lose(losePercent)
}

func (*lose) Stop(_ context.Context, f *Field) error { return f.Mend() }
