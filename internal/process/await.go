package process

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

const (
	fileTimeout      = 30 * time.Second
	filePollInterval = 200 * time.Millisecond
)

// AwaitFile repeats read for half a minute while it says that something does not exist yet.
func AwaitFile(ctx context.Context, logger *slog.Logger, what string, read func() error) error {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	for told := false; ; told = true {
		err := read()
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !told {
			logger.Info("waiting for a file that another program writes", "path", what, "timeout", fileTimeout)
		}
		if !Sleep(ctx, filePollInterval) {
			return err
		}
	}
}

// Sleep reports whether it slept to the end; it ends early with ctx.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
