package controllers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
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
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	if env.Numbers == nil {
		env.Numbers = &numbers.Ledger{}
	}
	send := &sender{
		ctx: ctx, sink: &typedcorev1.EventSinkImpl{Interface: env.Client.CoreV1().Events("")},
		correlator: record.NewEventCorrelator(clock.RealClock{}), counts: &env.Numbers.Events, log: env.Logger,
	}
	events.StartEventWatcher(send.send)

	var wg sync.WaitGroup
	for _, c := range all(cfg) {
		if cfg.APIOnly && !c.OfAPI {
			continue
		}
		env.Events = counted{events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: c.Name}), send}
		own := env
		wg.Go(func() { keepRunning(ctx, own, c) })
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
