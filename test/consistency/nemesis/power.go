package nemesis

import (
	"context"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// power cuts the power of a server: of what it wrote and had not synced, only parts remain.
type power struct{}

func (*power) Name() string             { return "power-cut" }
func (*power) Needs() []cluster.Ability { return []cluster.Ability{cluster.Power} }

func (*power) Start(_ context.Context, f *Field) (string, error) {
	return cluster.Name(cluster.PowerServer), f.CutPower(f.random.Uint64())
}

func (*power) Stop(context.Context, *Field) error { return nil }
