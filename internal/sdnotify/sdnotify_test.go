package sdnotify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const interval = time.Minute

// TestWatchdog is told while the parts make progress, and while one hangs or fails it is not.
func TestWatchdog(t *testing.T) {
	healthy := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		interval time.Duration
		progress func(context.Context) error
		want     int
	}{
		"progress":       {interval, healthy, looksPerInterval},
		"no watchdog":    {0, healthy, 0},
		"a part fails":   {interval, func(context.Context) error { return errors.New("stuck") }, 0},
		"a part is late": {interval, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 0},
		"a part hangs":   {interval, func(context.Context) error { time.Sleep(2 * interval); return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := 0
				s := &Service{interval: c.interval, logger: slog.New(slog.DiscardHandler), notify: func(state string) error {
					if state != "WATCHDOG=1" {
						t.Errorf("told %q", state)
					}
					told++
					return nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), interval-time.Second)
				defer cancel()
				s.Watch(ctx, c.progress)
				if told != c.want {
					t.Errorf("told %d times in %v, want %d", told, interval, c.want)
				}
			})
		})
	}
}

// TestToldOnce: ready with words, and stopping. What cannot be told ends nothing.
func TestToldOnce(t *testing.T) {
	var told []string
	s := &Service{logger: slog.New(slog.DiscardHandler), notify: func(state string) error {
		told = append(told, state)
		return errors.New("nobody listens")
	}}
	s.Ready("serving")
	s.Stopping()
	if want := []string{"READY=1\nSTATUS=serving", "STOPPING=1"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestNobodyAsks: a process that no service manager started tells nothing, and does not wait.
func TestNobodyAsks(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	s := Open(slog.New(slog.DiscardHandler))
	s.Ready("serving")
	s.Watch(t.Context(), func(context.Context) error {
		t.Error("asked")
		return nil
	})
}
