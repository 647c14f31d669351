package nemesis

import (
	"context"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// unplug takes a server's cable out: neither servers nor clients reach it.
type unplug struct{ victim int }

func (*unplug) Name() string             { return "unplug" }
func (*unplug) Needs() []cluster.Ability { return []cluster.Ability{cluster.Unplug} }

func (u *unplug) Start(ctx context.Context, f *Field) (string, error) {
	u.victim = leader(ctx, f)[0]
	return cluster.Name(u.victim), f.Unplug(u.victim)
}

func (u *unplug) Stop(_ context.Context, f *Field) error { return f.Plug(u.victim) }
