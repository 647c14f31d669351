package eintr

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestASignalEndsNoSystemCall: it is made again, and other errors are the caller's.
func TestASignalEndsNoSystemCall(t *testing.T) {
	for _, want := range []error{nil, unix.ENOSPC} {
		answers := []error{unix.EINTR, unix.EINTR, want}
		err := Retry(func() (err error) {
			err, answers = answers[0], answers[1:]
			return err
		})
		if !errors.Is(err, want) || len(answers) > 0 {
			t.Errorf("%v with %d answers left, want %v", err, len(answers), want)
		}
	}
}
