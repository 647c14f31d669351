package nemesis

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/test/clockskew"
	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

const skewMax = time.Hour

// skew sets one server's wall clock forward or back.
type skew struct{ victim int }

func (*skew) Name() string             { return "clock" }
func (*skew) Needs() []cluster.Ability { return []cluster.Ability{cluster.Clock} }

func (s *skew) Start(ctx context.Context, f *Field) (string, error) {
	s.victim = leader(ctx, f)[0]
	offset := time.Duration(f.random.Int64N(int64(2*skewMax))) - skewMax
	return fmt.Sprintf("%s by %v", cluster.Name(s.victim), offset.Round(time.Second)), clockskew.Set(f.PID(s.victim), offset)
}

// Stop sets it right.
func (s *skew) Stop(_ context.Context, f *Field) error {
	return clockskew.Set(f.PID(s.victim), 0)
}
