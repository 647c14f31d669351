package replica

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

func TestALogMustJoinItsSnapshot(t *testing.T) {
	disk := NewMemory()
	log, _ := newTestLog(disk)
	for index := uint64(5); index < 8; index++ {
		if err := log.StoreLog(entry(index, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
	}
	for snapshot, want := range map[uint64]error{3: ErrCorrupt, 4: nil, 6: nil} {
		reopened, _ := newTestLog(disk)
		if err := reopened.verifyAll(snapshot); !errors.Is(err, want) {
			t.Errorf("a log from 5 beside a snapshot up to %d: %v, want %v", snapshot, err, want)
		}
	}
}

// TestTheLogIsSynced: a write is on the disk before it is reported done. That a
// power cut shows it is tested in test/powercut; here it is the setting itself.
func TestTheLogIsSynced(t *testing.T) {
	storage, err := OpenFiles(t.Context(), t.TempDir(), testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	database := reflect.ValueOf(storage.stable).Elem().FieldByName("conn").Elem()
	for _, setting := range []string{"NoSync", "NoGrowSync"} {
		if database.FieldByName(setting).Bool() {
			t.Errorf("the database is opened with %s", setting)
		}
	}
}

// TestTheMarkerAloneShowsALostLog: a server that stopped before its first watermark
// is known by the marker.
func TestTheMarkerAloneShowsALostLog(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 3)
	for _, file := range []string{"raft/log", "state-marker/watermark.json"} {
		if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openLone(t, dir, nil); !errors.Is(err, ErrStateLost) {
		t.Errorf("open with an empty log: %v", err)
	}
}

// TestALogShorterThanItWasIsRefused, in the same term too.
func TestALogShorterThanItWasIsRefused(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 3)
	file := marks.Dir(filepath.Join(dir, marksDir))
	mark, err := file.LoadWatermark()
	if err != nil || mark.Index == 0 {
		t.Fatalf("%+v, %v", mark, err)
	}
	mark.Index += 10
	if err := file.SaveWatermark(mark); err != nil {
		t.Fatal(err)
	}
	if _, err := openLone(t, dir, nil); !errors.Is(err, ErrStateLost) {
		t.Errorf("open with a log that reached further: %v", err)
	}
}
