package nemesis

import (
	"context"
	"errors"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// kill ends servers at once (SIGKILL).
type kill struct {
	name   string
	choose func(ctx context.Context, f *Field) []int
	needs  []cluster.Ability
}

func (k *kill) Name() string             { return k.name }
func (k *kill) Needs() []cluster.Ability { return k.needs }

func (k *kill) Start(ctx context.Context, f *Field) (string, error) {
	victims := k.choose(ctx, f)
	var err error
	for _, i := range victims {
		err = errors.Join(err, f.Kill(i))
	}
	return names(victims), err
}

// Stop has nothing to undo: killed servers are started like all that do not run.
func (*kill) Stop(context.Context, *Field) error { return nil }

// stop asks a server to end (SIGTERM), as an upgrade does.
type stop struct{}

func (*stop) Name() string             { return "stop" }
func (*stop) Needs() []cluster.Ability { return nil }

func (*stop) Start(ctx context.Context, f *Field) (string, error) {
	victims := leader(ctx, f)
	return names(victims), f.Cluster.Stop(victims[0])
}

func (*stop) Stop(context.Context, *Field) error { return nil }
