package replica

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// putIn puts folders of one data directory in the place of another's.
func putIn(t *testing.T, from, to string, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		if err := os.RemoveAll(filepath.Join(to, folder)); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(to, folder), os.DirFS(filepath.Join(from, folder))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheLogOfAnotherMemberIsRefused, with its snapshots or without, of another server or an earlier life of this one:
// its votes are not this member's.
func TestTheLogOfAnotherMemberIsRefused(t *testing.T) {
	other := t.TempDir()
	r, err := openLone(t, other, func(c *Config) { c.ID, c.InitialServers = "server-2", []Server{{"server-2", "server-2:1"}} })
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	writeKey(t, r, 1)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for name, folders := range map[string][]string{"log": {"raft"}, "log and snapshots": {"raft", "snapshots"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, 3)
			putIn(t, other, dir, folders...)
			if _, err := openLone(t, dir, nil); !errors.Is(err, ErrForeignData) {
				t.Errorf("it is used: %v", err)
			}
			if _, err := ExamineFiles(context.Background(), dir, testLogger(t)); !errors.Is(err, ErrForeignData) {
				t.Errorf("a recovery begins with it: %v", err)
			}
		})
	}
	t.Run("of an earlier member of the name", func(t *testing.T) {
		dir := t.TempDir()
		fill(t, dir, 3)
		if err := marks.Dir(filepath.Join(dir, marksDir)).Save(&marks.Marker{ServerID: "server-1+00000001", ClusterID: "c1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := openLone(t, dir, nil); !errors.Is(err, ErrForeignData) {
			t.Errorf("it is used: %v", err)
		}
	})
}

func termsOf(s *Storage) *termstore.Store {
	return s.terms(&diskGuard{fail: func(error) {}, limit: offlineStall})
}

// unsign makes a log what an older release wrote, whose founders did not say whose it is. It returns who did.
func unsign(t *testing.T, dir string) string {
	t.Helper()
	storage, err := OpenFiles(t.Context(), dir, testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	id, err := termsOf(storage).Writer()
	if err != nil {
		t.Fatal(err)
	}
	if err := termsOf(storage).Set([]byte(termstore.WriterKey), nil); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestALogOfAnOlderReleaseIsSigned(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 1)
	unsign(t, dir)
	if _, err := openLone(t, dir, func(c *Config) { c.ID = "server-2" }); !errors.Is(err, ErrForeignData) {
		t.Errorf("another server uses it: %v", err)
	}
	fill(t, dir, 1)
	if id := unsign(t, dir); id != "server-1" {
		t.Errorf("after a start it is written by %q", id)
	}
}
