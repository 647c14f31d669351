package process

import (
	"errors"
	"testing"
	"time"
)

func TestADataDirectoryIsForOneProcess(t *testing.T) {
	dir := t.TempDir()
	release, err := Lock(dir, "server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir, "server"); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
	agent, err := Lock(dir, "agent")
	if err != nil {
		t.Errorf("an agent beside it: %v", err)
	} else {
		agent()
	}
	release()
	if release, err = Lock(dir, "server"); err != nil {
		t.Errorf("after the first has ended: %v", err)
	} else {
		release()
	}
}

// TestALockThatIsAboutToEndIsWaitedFor: an agent that was killed while it started a pod's process leaves the lock to that one for a moment.
func TestALockThatIsAboutToEndIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	release, err := Lock(dir, "agent")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(lockPatience/10, release)
	next, err := Lock(dir, "agent")
	if err != nil {
		t.Fatal(err)
	}
	next()
}
