package sdnotify

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

const interval = time.Minute

func newService(interval time.Duration, notify func(state string) error) *Service {
	return &Service{interval: interval, notify: notify, logger: slog.New(slog.DiscardHandler), ready: make(chan struct{})}
}

// TestWatchdog is told while the parts make progress, and while one hangs or fails it is not.
func TestWatchdog(t *testing.T) {
	healthy := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		interval time.Duration
		progress func(context.Context) error
		want     int
	}{
		"progress":       {interval, healthy, looksPerInterval},
		"no parts":       {interval, nil, looksPerInterval},
		"no watchdog":    {0, healthy, 0},
		"a part fails":   {interval, func(context.Context) error { return errors.New("stuck") }, 0},
		"a part is late": {interval, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 0},
		"a part hangs":   {interval, func(context.Context) error { time.Sleep(2 * interval); return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := 0
				s := newService(c.interval, func(state string) error {
					if state == "READY=1\nSTATUS=x" {
						return nil
					}
					if state != "WATCHDOG=1" {
						t.Errorf("told %q", state)
					}
					told++
					return nil
				})
				stop := s.Watch(t.Context())
				time.Sleep(interval) // nothing is told before it runs
				s.Does("x", c.progress)
				time.Sleep(interval - time.Second)
				stop()
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
	s := newService(0, func(state string) error {
		told = append(told, state)
		return errors.New("nobody listens")
	})
	s.Does("serving", nil)
	s.Does("more\nMAINPID=1", nil)
	s.Stopping()
	if want := []string{"READY=1\nSTATUS=serving", "STATUS=more MAINPID=1", "STOPPING=1"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestNobodyAsks: a process that no service manager started tells nothing, and does not wait.
func TestNobodyAsks(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	s := Open(slog.New(slog.DiscardHandler))
	s.Does("serving", func(context.Context) error {
		t.Error("asked")
		return nil
	})
	s.Watch(t.Context())()
	if s.IsManaged() {
		t.Error("somebody asks")
	}
}

// TestTheManagerIsNotInherited: what children tell is none of this process.
func TestTheManagerIsNotInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "1000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	s := Open(slog.New(slog.DiscardHandler))
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if value, ok := os.LookupEnv(name); ok {
			t.Errorf("%s=%s", name, value)
		}
	}
	s.Does("serving", nil)
	text := make([]byte, 100)
	n, err := conn.Read(text)
	if got := string(text[:n]); err != nil || got != "READY=1\nSTATUS=serving" || !s.IsManaged() || s.interval != time.Second {
		t.Errorf("%q, %v: %v", got, s.interval, err)
	}
}

// TestAManagerThatDoesNotRead holds nobody: its socket is full after a few datagrams.
func TestAManagerThatDoesNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const more = 100_000 // than any socket holds
	for range more {
		if err = send(path, "STATUS=x", time.Millisecond); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("want a deadline, got %v", err)
	}
}
