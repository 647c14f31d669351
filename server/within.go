package server

import (
	"errors"
	"time"
)

// errStuck says that a part did not end, as with a disk that hangs. The process
// can only exit.
var errStuck = errors.New("did not stop in time")

// within runs do, but waits no longer than limit for it.
func within(limit time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return errStuck
	}
}
