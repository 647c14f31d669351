package network

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaysAreLookedAtWhenTheMachineChanges: changes that come together are one look, and what nobody tells of is seen later.
func TestWaysAreLookedAtWhenTheMachineChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		routes := &Routes{told: make(chan struct{}, 1), read: func() (routingTable, error) {
			looks.Add(1)
			return nil, nil
		}}
		routes.config.Logger = slog.New(slog.DiscardHandler)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); routes.Run(ctx) }()
		after := func(d time.Duration, what string, want int32) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := looks.Load(); got != want {
				t.Errorf("%s: looked %d times, want %d", what, got, want)
			}
		}
		for range 100 {
			routes.Changed()
		}
		after(routesPause/2, "so soon", 0)
		after(routesPause, "changes", 1)
		after(routesInterval, "nothing was told", 2)
		cancel()
		<-ended
	})
}
