package raftdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
)

const key = "CurrentTerm"

// oldDir is a directory of a release without segments, with ten entries and a term.
func oldDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	database, err := openDatabase(filepath.Join(dir, Database), []string{key})
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	for i := uint64(1); i <= 10; i++ {
		if err := database.StoreLog(&raft.Log{Index: i, Term: 1, Data: []byte("data"), Extensions: []byte("checksum")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := database.SetUint64([]byte(key), 7); err != nil {
		t.Fatal(err)
	}
	return dir
}

// check opens the directory and looks for its entries and the term.
func check(t *testing.T, dir string, wantInDatabase bool) *Dir {
	t.Helper()
	d, err := Open(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	first, _ := d.Log.FirstIndex()
	last, _ := d.Log.LastIndex()
	term, _ := d.Stable.GetUint64([]byte(key))
	var entry raft.Log
	if err := d.Log.GetLog(10, &entry); err != nil || string(entry.Data) != "data" || string(entry.Extensions) != "checksum" {
		t.Errorf("entry 10: %+v, %v", entry, err)
	}
	if first != 1 || last != 10 || term != 7 || d.InDatabase != wantInDatabase {
		t.Errorf("entries %d to %d, term %d, in the database %v", first, last, term, d.InDatabase)
	}
	return d
}

func TestALogMovesWhenItMay(t *testing.T) {
	dir := oldDir(t)
	d := check(t, dir, true)
	if err := errors.Join(d.LetMove(), d.LetMove(), d.Close()); err != nil {
		t.Fatal(err)
	}
	d = check(t, dir, false)
	if err := errors.Join(d.LetMove(), d.Close()); err != nil || exists(filepath.Join(dir, mayMoveName)) {
		t.Errorf("moved, and to be moved again (%v)", err)
	}
	check(t, dir, false)
}

// TestAMovedDirectoryIsStillLocked: the database that replaced the other one is held.
func TestAMovedDirectoryIsStillLocked(t *testing.T) {
	dir := oldDir(t)
	if err := os.WriteFile(filepath.Join(dir, mayMoveName), nil, fileMode); err != nil {
		t.Fatal(err)
	}
	check(t, dir, false)
	if second, err := Open(dir, key); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
		if err == nil {
			second.Close()
		}
	}
}

// TestAMoveThatWasInterruptedBeginsAgain: at each place where files of it may lie about.
func TestAMoveThatWasInterruptedBeginsAgain(t *testing.T) {
	half := func(path string) error {
		log, err := segments.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(log.StoreLog(&raft.Log{Index: 1, Term: 1}), log.Close())
	}
	for name, interrupt := range map[string]func(dir string) error{
		"copying": func(dir string) error { return half(filepath.Join(dir, movingName)) },
		"copied":  func(dir string) error { return half(filepath.Join(dir, Segments)) },
		"writing the database": func(dir string) error {
			return errors.Join(half(filepath.Join(dir, Segments)), os.WriteFile(filepath.Join(dir, newDatabaseName), []byte("x"), fileMode))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := oldDir(t)
			if err := errors.Join(interrupt(dir), os.WriteFile(filepath.Join(dir, mayMoveName), nil, fileMode)); err != nil {
				t.Fatal(err)
			}
			check(t, dir, false)
			for _, left := range []string{movingName, newDatabaseName, mayMoveName} {
				if exists(filepath.Join(dir, left)) {
					t.Errorf("%s is left", left)
				}
			}
		})
	}
}

// TestATermThatCannotBeCopiedStopsTheMove: a vote would be forgotten.
func TestATermThatCannotBeCopiedStopsTheMove(t *testing.T) {
	database := func(name string) *raftboltdb.BoltStore {
		d, err := openDatabase(filepath.Join(t.TempDir(), name), []string{key})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	closed, from, to := database("closed"), database("from"), database("to")
	if err := errors.Join(closed.Close(), from.SetUint64([]byte(key), 7)); err != nil {
		t.Fatal(err)
	}
	if err := copyStable(closed, to, []string{key}); err == nil {
		t.Error("it could not be read, and nobody was told")
	}
	if err := copyStable(from, closed, []string{key}); err == nil {
		t.Error("it could not be written, and nobody was told")
	}
	if err := copyStable(from, to, []string{"LastVoteTerm", key}); err != nil {
		t.Error(err)
	}
	if term, err := to.GetUint64([]byte(key)); term != 7 || err != nil {
		t.Errorf("term %d (%v)", term, err)
	}
}

func TestBytesAreThoseOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	if got := Bytes(filepath.Join(dir, "none")); got != 0 {
		t.Errorf("no folder has %d bytes", got)
	}
	below := filepath.Join(dir, "below")
	if err := errors.Join(os.Mkdir(below, 0o700), os.WriteFile(filepath.Join(dir, "a"), make([]byte, 3), fileMode),
		os.WriteFile(filepath.Join(below, "b"), make([]byte, 4), fileMode)); err != nil {
		t.Fatal(err)
	}
	if got := Bytes(dir); got != 7 {
		t.Errorf("%d bytes, want 7", got)
	}
}
