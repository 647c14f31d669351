package controllers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/recording"
)

// restartPause is how long a controller that failed rests before it runs again.
const restartPause = time.Second

// Run runs every controller of the list until ctx ends, that is for one
// leadership term; it returns nil then, after their last goroutine.
func Run(ctx context.Context, env reconcile.Env, cfg Config) error {
	cfg, err := cfg.withDefaults(env)
	if err != nil {
		return err
	}
	if env.Logger == nil {
		env.Logger = slog.New(slog.DiscardHandler)
	}
	if env.Clock == nil {
		env.Clock = clock.RealClock{}
	}
	if env.Numbers == nil {
		env.Numbers = &numbers.Ledger{}
	}
	events := recording.Start(ctx, env.Client, env.Clock, &env.Numbers.Events, env.Logger)
	defer events.Stop()

	var wg sync.WaitGroup
	for _, c := range all(cfg) {
		if !cfg.runs(c) {
			continue
		}
		env.Events = events.Recorder(c.Name)
		own := env
		wg.Go(func() { keepRunning(ctx, own, c) })
	}
	if cfg.Begun != nil {
		cfg.Begun()
	}
	wg.Wait()
	return nil
}

// keepRunning runs one controller again whenever it ends before the term does.
func keepRunning(ctx context.Context, env reconcile.Env, c reconcile.Controller) {
	for {
		err := c.Start(ctx, env)
		if ctx.Err() != nil {
			return
		}
		env.Logger.Error("controller ended early, will restart", "controller", c.Name, "err", err)
		timer := time.NewTimer(restartPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
