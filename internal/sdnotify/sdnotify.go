package sdnotify

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// looksPerInterval is how often the parts are asked in the time after which the watchdog ends the process: one late answer is no death.
const looksPerInterval = 4

// Service is this process as its service manager sees it.
type Service struct {
	// interval is the watchdog's; 0: there is none.
	interval time.Duration
	notify   func(state string) error
	logger   *slog.Logger
}

// Open reads from the environment who started this process. The Service is never nil.
func Open(logger *slog.Logger) *Service {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Warn("the service manager's watchdog is not told that this process works", "err", err)
	}
	return &Service{interval: interval, logger: logger, notify: func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}}
}

// Ready says that the process does its work, and in a few words which.
func (s *Service) Ready(status string) { s.tell(daemon.SdNotifyReady + "\nSTATUS=" + status) }

// Stopping says that the process is about to end.
func (s *Service) Stopping() { s.tell(daemon.SdNotifyStopping) }

// Watch asks again and again, until ctx ends, and tells the watchdog each time that there was no error. Whatever hangs in progress keeps
// the watchdog untold, which is what it is for.
func (s *Service) Watch(ctx context.Context, progress func(context.Context) error) {
	if s.interval == 0 {
		return
	}
	every := s.interval / looksPerInterval
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := within(ctx, every, progress)
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

func within(ctx context.Context, limit time.Duration, progress func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return progress(ctx)
}

func (s *Service) tell(state string) {
	if err := s.notify(state); err != nil {
		s.logger.Warn("the service manager could not be told", "what", state, "err", fmt.Errorf("sd_notify: %w", err))
	}
}
