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
}

func (c *cut) Name() string           { return c.name }
func (*cut) Needs() []cluster.Ability { return []cluster.Ability{cluster.Network} }

func (c *cut) Start(ctx context.Context, f *Field) (string, error) {
	pairs := c.shape(ctx, f)
	text := ""
	for _, pair := range pairs {
		text += fmt.Sprintf(" %d-/->%d", pair.From+1, pair.To+1)
	}
	return text[1:], f.Cut(pairs)
}

func (*cut) Stop(_ context.Context, f *Field) error { return f.Mend() }

// others are all servers but one.
func others(i int) []int {
	return []int{(i + 1) % cluster.Servers, (i + 2) % cluster.Servers}
}

func toward(i int) []cluster.Pair {
	return []cluster.Pair{{From: others(i)[0], To: i}, {From: others(i)[1], To: i}}
}

func from(i int) []cluster.Pair {
	return []cluster.Pair{{From: i, To: others(i)[0]}, {From: i, To: others(i)[1]}}
}

func isolateLeader(ctx context.Context, f *Field) []cluster.Pair {
	i := leader(ctx, f)[0]
	return append(toward(i), from(i)...)
}

func isolateAny(ctx context.Context, f *Field) []cluster.Pair {
	i := anyone(ctx, f)[0]
	return append(toward(i), from(i)...)
}

// deafLeader: its heartbeats arrive, the answers do not.
func deafLeader(ctx context.Context, f *Field) []cluster.Pair { return toward(leader(ctx, f)[0]) }

// muteLeader: it hears the others, they do not hear it.
func muteLeader(ctx context.Context, f *Field) []cluster.Pair { return from(leader(ctx, f)[0]) }

// bridge: two servers reach each other only through the third.
func bridge(ctx context.Context, f *Field) []cluster.Pair {
	ends := others(anyone(ctx, f)[0])
	return []cluster.Pair{{From: ends[0], To: ends[1]}, {From: ends[1], To: ends[0]}}
}

// ring: each server reaches only the next one, in one direction.
func ring(context.Context, *Field) []cluster.Pair {
	var pairs []cluster.Pair
	for i := range cluster.Servers {
		pairs = append(pairs, cluster.Pair{From: (i + 1) % cluster.Servers, To: i})
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
