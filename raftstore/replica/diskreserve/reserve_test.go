package diskreserve

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A start on a full disk begins with giving the reserve back.
func TestReserveIsFoundAgain(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Make(); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(dir); err != nil || !again.held {
		t.Errorf("%+v %v", again, err)
	}
	if err := os.Truncate(r.path, r.bytes/2); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(dir); err != nil || again.held || exists(r.path) {
		t.Errorf("half a reserve: %+v %v", again, err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestASignalEndsNoSystemCall: it is made again, and other errors are the caller's.
func TestASignalEndsNoSystemCall(t *testing.T) {
	for _, want := range []error{nil, unix.ENOSPC} {
		answers := []error{unix.EINTR, unix.EINTR, want}
		err := uninterrupted(func() (err error) {
			err, answers = answers[0], answers[1:]
			return err
		})
		if !errors.Is(err, want) || len(answers) > 0 {
			t.Errorf("%v with %d answers left, want %v", err, len(answers), want)
		}
	}
}
