package nemesis

import (
	"context"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// replace takes a server out of the cluster for good, and makes an empty one of its name a member, as an administrator does with a
// machine that is worn out. Meanwhile there is a member less.
type replace struct {
	name   string
	choose func(ctx context.Context, f *Field) []int
	victim int
}

func (r *replace) Name() string           { return r.name }
func (*replace) Needs() []cluster.Ability { return []cluster.Ability{cluster.Members} }

func (r *replace) Start(ctx context.Context, f *Field) (string, error) {
	r.victim = r.choose(ctx, f)[0]
	return cluster.Name(r.victim), f.Remove(r.victim)
}

func (r *replace) Stop(_ context.Context, f *Field) error { return f.Join(r.victim) }
