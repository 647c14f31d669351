package diskreserve

import (
	"os"
	"testing"
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
