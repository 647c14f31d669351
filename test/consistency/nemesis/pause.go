package nemesis

import (
	"context"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// pause stops a server's time (SIGSTOP): it goes on later as if nothing had been.
type pause struct {
	name    string
	choose  func(ctx context.Context, f *Field) []int
	victims []int
}

func (p *pause) Name() string           { return p.name }
func (*pause) Needs() []cluster.Ability { return nil }

func (p *pause) Start(ctx context.Context, f *Field) (string, error) {
	p.victims = p.choose(ctx, f)
	return names(p.victims), f.Pause(p.victims[0])
}

func (p *pause) Stop(_ context.Context, f *Field) error { return f.Resume(p.victims[0]) }

// A starved server runs for starveRun and waits for starveWait, in turn: a tenth of a CPU.
const (
	starveRun  = 10 * time.Millisecond
	starveWait = 90 * time.Millisecond
)

// starve takes most of its CPU from a server.
type starve struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (*starve) Name() string             { return "starve" }
func (*starve) Needs() []cluster.Ability { return nil }

func (s *starve) Start(ctx context.Context, f *Field) (string, error) {
	victim := leader(ctx, f)[0]
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			_ = f.Pause(victim) // Restore sees to it that it runs in the end
			sleep(ctx, starveWait)
			_ = f.Resume(victim)
			sleep(ctx, starveRun)
		}
	}()
	return cluster.Name(victim), nil
}

func (s *starve) Stop(context.Context, *Field) error {
	s.cancel()
	<-s.done
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
