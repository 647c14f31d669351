package replica

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// TestSetAsideIncludesTheWatermark: a damaged watermark was left where it was, so the new member
// found it again at each start and never came back.
func TestSetAsideIncludesTheWatermark(t *testing.T) {
	files := Files{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	if err := os.MkdirAll(string(files.marks()), dirMode); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(files.marks()), "watermark.json"), []byte(`{"index":1,"checksum":0}`), fileMode); err != nil {
		t.Fatal(err)
	}
	if _, err := files.marks().LoadWatermark(); err == nil {
		t.Fatal("a damaged watermark was read")
	}
	if err := files.setAside(&marks.Marker{ServerID: "a+1"}); err != nil {
		t.Fatal(err)
	}
	if mark, err := files.marks().LoadWatermark(); err != nil || mark.Index != 0 {
		t.Errorf("%+v, %v", mark, err)
	}
}

// TestDataAreSetAsideTogether: log and snapshots lie in one folder afterwards, also if the power was cut when only the log had moved, and
// what was set aside before is gone.
func TestDataAreSetAsideTogether(t *testing.T) {
	older, newer := quarantinePrefix+"20260101T000000Z", quarantinePrefix+"20260102T000000Z"
	for name, c := range map[string]struct{ before, after []string }{
		"nothing":           {nil, []string{"state"}},
		"all at once":       {[]string{"raft/log", "snapshots/one"}, []string{"state", "*/raft/log", "*/snapshots/one"}},
		"a log alone":       {[]string{"raft/log"}, []string{"state", "*/raft/log"}},
		"for a second time": {[]string{"raft/log", older + "/raft/former"}, []string{"state", "*/raft/log"}},
		"after a power cut": {[]string{"snapshots/one", newer + "/raft/log"}, []string{"state", "*/raft/log", "*/snapshots/one"}},
		"and for the second": {
			[]string{"snapshots/one", older + "/raft/former", newer + "/raft/log"},
			[]string{"state", "*/raft/log", "*/snapshots/one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := Files{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
			for _, path := range append(c.before, "state/of-others") {
				path = filepath.Join(files.Dir, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), dirMode), os.WriteFile(path, nil, fileMode)); err != nil {
					t.Fatal(err)
				}
			}
			if err := files.quarantine(); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, files.Dir, len(c.before) > 0, c.after)
		})
	}
}

// wantFiles: each pattern is there, one folder was set aside or none, and none of what was set aside before.
func wantFiles(t *testing.T, dir string, aside bool, patterns []string) {
	t.Helper()
	for _, pattern := range patterns {
		if found, err := filepath.Glob(filepath.Join(dir, pattern)); len(found) != 1 || err != nil {
			t.Errorf("%s is there as %q (%v)", pattern, found, err)
		}
	}
	folders, _ := filepath.Glob(filepath.Join(dir, quarantinePrefix+"*"))
	former, _ := filepath.Glob(filepath.Join(dir, "*", "raft", "former"))
	if (len(folders) == 1) != aside || len(folders) > 1 || len(former) > 0 {
		t.Errorf("set aside are %q, and of the time before %q", folders, former)
	}
}

// TestEveryStableKeyIsKnown: the check of the file took the id of a member that had come back for
// a damaged key, so that such a server could start once and never again.
func TestEveryStableKeyIsKnown(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		storage, err := OpenFiles(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range stableKeys {
			if err := storage.stable.Set([]byte(key), []byte("12345678")); err != nil {
				t.Fatal(err)
			}
		}
		if err := storage.stable.Set([]byte(termstore.WriterKey), []byte("a+1")); err != nil {
			t.Fatal(err)
		}
		if err := storage.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
