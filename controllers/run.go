package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// restartPause is how long a controller that failed rests before it runs again.
const restartPause = time.Second

// Run runs every controller of the list until ctx ends, that is for one
// leadership term; it returns nil then, after their last goroutine.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if err := Warm(cfg.Informers); err != nil {
		return err
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cfg.Client.CoreV1().Events("")})

	var wg sync.WaitGroup
	for _, c := range all() {
		recorder := events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: c.component})
		wg.Go(func() { keepRunning(ctx, cfg, c, recorder) })
	}
	wg.Wait()
	return nil
}

// keepRunning runs one controller again whenever it ends before the term does.
func keepRunning(ctx context.Context, cfg Config, c controller, recorder record.EventRecorder) {
	for {
		err := c.run(ctx, cfg, recorder)
		if ctx.Err() != nil {
			return
		}
		cfg.Logger.Error("controller ended early, will restart", "controller", c.component, "error", err)
		timer := time.NewTimer(restartPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
