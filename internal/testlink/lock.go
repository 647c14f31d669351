package testlink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// pollPause is between two looks at a lock, a socket or a connection.
const pollPause = 10 * time.Millisecond

// errHeld: another process has the lock, and keeps it.
var errHeld = errors.New("another process holds the lock")

// lock waits for a lock on the file, which it makes. It gives up with errHeld after the limit.
func lock(ctx context.Context, path string, limit time.Duration) (unlock func(), err error) {
	for deadline := time.Now().Add(limit); ; {
		unlock, err := tryLock(path)
		switch {
		case !errors.Is(err, errHeld):
			return unlock, err
		case time.Now().After(deadline):
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollPause):
		}
	}
}

// tryLock locks the file, or says with errHeld that another process has it.
func tryLock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR), err == nil && !stillThere(file, path):
		_ = file.Close()
		return nil, errHeld
	case err != nil:
		_ = file.Close()
		return nil, fmt.Errorf("%s cannot be locked: set XDG_RUNTIME_DIR to a folder of yours on a local disk: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// stillThere: who locked the file before may have removed it (tidy), so that the next one makes and locks another.
func stillThere(file *os.File, path string) bool {
	locked, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(locked, there)
}
