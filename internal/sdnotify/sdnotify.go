package sdnotify

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

const (
	// looksPerInterval is how often the parts are asked in the time after which the watchdog ends the process: one late answer is no death.
	looksPerInterval = 4
	// tellTimeout bounds telling one thing: a service manager that does not read must not hold this process.
	tellTimeout = time.Second
	// socketVariable names the socket of the service manager.
	socketVariable = "NOTIFY_SOCKET"
)

// Service is this process as its service manager sees it.
type Service struct {
	// interval is the watchdog's; 0: there is none.
	interval time.Duration
	// notify is nil where nobody asks.
	notify   func(state string) error
	logger   *slog.Logger
	progress atomic.Pointer[func(context.Context) error]
	// ready is closed by the first Does.
	ready chan struct{}
	once  sync.Once
}

// Open reads from the environment who started this process, and takes that out of it: it is none of the process's children's. The Service
// is never nil.
func Open(logger *slog.Logger) *Service {
	interval, err := daemon.SdWatchdogEnabled(true)
	if err != nil {
		logger.Warn("the service manager's watchdog is not told that this process works", "err", err)
	}
	s := &Service{interval: interval, logger: logger, ready: make(chan struct{})}
	if path := os.Getenv(socketVariable); path != "" {
		s.notify = func(state string) error { return send(path, state, tellTimeout) }
	}
	if err := os.Unsetenv(socketVariable); err != nil {
		logger.Warn("children of this process may tell the service manager of themselves", "err", err)
	}
	return s
}

// send sends one datagram. A socket whose reader is away is full after a few.
func send(path, state string, timeout time.Duration) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}

// IsManaged reports whether a service manager asks how this process is.
func (s *Service) IsManaged() bool { return s.notify != nil }

// Does says in a few words what the process does from now on, the first time also that it runs, and what proves that it goes on; nil: it
// has no parts that could hang.
func (s *Service) Does(what string, progress func(context.Context) error) {
	s.progress.Store(&progress)
	state := "STATUS=" + strings.ReplaceAll(what, "\n", " ") // a line more would be told of something else
	s.once.Do(func() {
		state = daemon.SdNotifyReady + "\n" + state
		close(s.ready)
	})
	s.tell(state)
}

// Stopping says that the process is about to end.
func (s *Service) Stopping() { s.tell(daemon.SdNotifyStopping) }

// Watch returns at once. From the first Does until what it returns is called, it asks again and again for the proof that Does has named,
// and tells the watchdog each time that there was no error. Whatever hangs there keeps the watchdog untold, which is what it is for.
func (s *Service) Watch(ctx context.Context) (stop func()) {
	if s.interval == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	return func() {
		cancel()
		watching.Wait()
	}
}

func (s *Service) watch(ctx context.Context) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return
	}
	every := s.interval / looksPerInterval
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := s.prove(ctx, every)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.logger.Warn("the watchdog is not told that this process works", "endsItAfter", s.interval, "err", err)
		default:
			s.tell(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) prove(ctx context.Context, limit time.Duration) error {
	progress := s.progress.Load()
	if progress == nil || *progress == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return (*progress)(ctx)
}

func (s *Service) tell(state string) {
	if s.notify == nil {
		return
	}
	if err := s.notify(state); err != nil {
		s.logger.Warn("the service manager could not be told", "what", state, "err", fmt.Errorf("sd_notify: %w", err))
	}
}
