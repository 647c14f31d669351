package setpoint

import (
	"errors"
	"testing"
)

func TestADataDirectoryIsForOneProcess(t *testing.T) {
	dir := t.TempDir()
	release, err := lockDataDir(dir, "server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockDataDir(dir, "server"); !errors.Is(err, errDataDirInUse) {
		t.Errorf("a second server: %v", err)
	}
	agent, err := lockDataDir(dir, "agent")
	if err != nil {
		t.Errorf("an agent beside it: %v", err)
	} else {
		agent()
	}
	release()
	if release, err = lockDataDir(dir, "server"); err != nil {
		t.Errorf("after the first has ended: %v", err)
	} else {
		release()
	}
}
