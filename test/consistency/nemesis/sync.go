package nemesis

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// syncTimeMax is what a sync of a slow disk takes at most: it is no disk that hangs.
const syncTimeMax = 3 * time.Second

// slowSyncs makes the syncs of one server's disk slow.
type slowSyncs struct{}

func (*slowSyncs) Name() string             { return "slow-sync" }
func (*slowSyncs) Needs() []cluster.Ability { return []cluster.Ability{cluster.Power} }

func (*slowSyncs) Start(_ context.Context, f *Field) (string, error) {
	d := time.Duration(f.random.Int64N(int64(syncTimeMax)))
	return fmt.Sprintf("%s: %v a sync", cluster.Name(cluster.PowerServer), d.Round(time.Millisecond)), f.SlowSyncs(d)
}

func (*slowSyncs) Stop(_ context.Context, f *Field) error { return f.SlowSyncs(0) }

// failSyncs makes the syncs of one server's disk fail. The server ends, and nothing that it did not sync may count.
type failSyncs struct{}

func (*failSyncs) Name() string             { return "fail-sync" }
func (*failSyncs) Needs() []cluster.Ability { return []cluster.Ability{cluster.Power} }

func (*failSyncs) Start(_ context.Context, f *Field) (string, error) {
	return cluster.Name(cluster.PowerServer), f.FailSyncs(true)
}

func (*failSyncs) Stop(_ context.Context, f *Field) error { return f.FailSyncs(false) }
