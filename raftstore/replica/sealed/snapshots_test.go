package sealed

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
)

var errCorrupt = errors.New("corrupt")

func open(t *testing.T, dir string) *Snapshots {
	t.Helper()
	s, err := Open(dir, slog.New(slog.DiscardHandler), errCorrupt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// addresses is all that a snapshot store asks of a transport.
type addresses struct{ raft.Transport }

func (addresses) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }

func create(t *testing.T, s *Snapshots, index uint64) raft.SnapshotSink {
	t.Helper()
	sink, err := s.Create(raft.SnapshotVersionMax, index, 3, raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a:1"}}}, 1, addresses{})
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

// keep writes a whole snapshot.
func keep(t *testing.T, s *Snapshots, index uint64, state string) {
	t.Helper()
	sink := create(t, s, index)
	if _, err := io.WriteString(sink, state); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}

// newest reads the newest snapshot; found is false if there is none.
func newest(t *testing.T, s *Snapshots) (index uint64, state string, found bool, err error) {
	t.Helper()
	metas, err := s.List()
	if err != nil || len(metas) == 0 {
		return 0, "", false, err
	}
	meta, source, err := s.Open(metas[0].ID)
	if err != nil {
		return 0, "", true, err
	}
	defer source.Close()
	text, err := io.ReadAll(source)
	if int64(len(text)) != meta.Size {
		t.Errorf("%d bytes, its description says %d", len(text), meta.Size)
	}
	return meta.Index, string(text), true, err
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, Dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, _, found, err := newest(t, s); found || err != nil || s.KeepNewest() != nil {
		t.Errorf("found one where there is none (%v, %v)", err, s.KeepNewest())
	}
	for index := uint64(1); index <= Kept+1; index++ {
		keep(t, s, index, "state")
		if got := s.NewestBytes(); got != int64(len("state")) {
			t.Errorf("the newest has %d bytes as soon as it is written", got)
		}
	}
	for _, s := range []*Snapshots{s, open(t, dir)} {
		if index, state, _, err := newest(t, s); index != Kept+1 || state != "state" || err != nil || s.NewestBytes() != int64(len("state")) {
			t.Errorf("snapshot %d, %q of %d bytes, %v", index, state, s.NewestBytes(), err)
		}
	}
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("kept %q, want one to use and one before it", got)
	}
	if err := s.KeepNewest(); err != nil || len(names(t, dir)) != 1 {
		t.Errorf("kept %q (%v)", names(t, dir), err)
	}
}

// TestAnUnfinishedSnapshotIsNone: given up, cut off by a crash, or without room on the disk, it leaves no file, and the
// one before it is still the newest.
func TestAnUnfinishedSnapshotIsNone(t *testing.T) {
	for name, end := range map[string]func(*testing.T, string, *Snapshots, raft.SnapshotSink){
		"given up": func(t *testing.T, _ string, _ *Snapshots, sink raft.SnapshotSink) {
			if err := sink.Cancel(); err != nil {
				t.Fatal(err)
			}
		},
		"crash": func(t *testing.T, dir string, _ *Snapshots, _ raft.SnapshotSink) {
			if index, _, _, err := newest(t, open(t, dir)); index != 1 || err != nil {
				t.Errorf("after the crash the newest is %d (%v)", index, err)
			}
		},
		"no room": func(t *testing.T, _ string, s *Snapshots, sink raft.SnapshotSink) {
			s.space = func() (diskreserve.Space, error) { return diskreserve.Space{TotalBytes: 1 << 40}, nil }
			if _, err := sink.Write(make([]byte, 2*roomCheckBytes)); err != nil {
				t.Fatalf("the room is looked at between two writes: %v", err)
			}
			if n, err := sink.Write([]byte("more")); n != 0 || err == nil {
				t.Errorf("it takes the last of the disk: %d bytes (%v)", n, err)
			}
			if err := sink.Cancel(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			keep(t, s, 1, "before")
			sink := create(t, s, 2)
			if _, err := io.WriteString(sink, "half a st"); err != nil {
				t.Fatal(err)
			}
			end(t, dir, s, sink)
			if index, state, _, err := newest(t, open(t, dir)); index != 1 || state != "before" || err != nil {
				t.Errorf("the newest is %d, %q, %v", index, state, err)
			}
			if got := names(t, dir); len(got) != 1 {
				t.Errorf("it left %q", got)
			}
		})
	}
}

// TestADamagedSnapshotHidesNoOlderOne: raft would go on to the older one, and so forget what was acknowledged since.
func TestADamagedSnapshotHidesNoOlderOne(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, folder string){
		"state": func(t *testing.T, folder string) {
			replaceIn(t, filepath.Join(folder, "state.bin"), "newer", "neuer")
		},
		"seal": func(t *testing.T, folder string) {
			replaceIn(t, filepath.Join(folder, "state.bin"), "seal", "leal")
		},
		"description": func(t *testing.T, folder string) {
			replaceIn(t, filepath.Join(folder, "meta.json"), `"Term":3`, `"Term":4`)
		},
		"size": func(t *testing.T, folder string) {
			replaceIn(t, filepath.Join(folder, "meta.json"), `"Size":`, `"Size":9`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			keep(t, s, 1, "older")
			keep(t, s, 2, "newer")
			metas, err := s.List()
			if err != nil || len(metas) != 2 {
				t.Fatal(metas, err)
			}
			harm(t, filepath.Join(dir, Dir, metas[0].ID))
			var told error
			s.Report(func(err error) { told = err })
			if _, _, _, err := newest(t, s); !errors.Is(err, errCorrupt) {
				t.Errorf("it is read: %v", err)
			}
			if _, _, err := s.Open(metas[1].ID); !errors.Is(err, errCorrupt) {
				t.Errorf("the older one is opened in its place: %v", err)
			}
			if !errors.Is(told, errCorrupt) || !errors.Is(s.Failure(), errCorrupt) {
				t.Errorf("told %v, failure %v", told, s.Failure())
			}
		})
	}
}

// TestRoomFor: 8 MiB are left for the log, or a 32nd of a smaller file system, after the next MiB.
func TestRoomFor(t *testing.T) {
	for total, needed := range map[int64]int64{1 << 40: 9 << 20, 256 << 20: 9 << 20, 64 << 20: 3 << 20} {
		if err := RoomFor(diskreserve.Space{TotalBytes: total, FreeBytes: needed}); err != nil {
			t.Errorf("%d of %d bytes are enough: %v", needed, total, err)
		}
		if RoomFor(diskreserve.Space{TotalBytes: total, FreeBytes: needed - 1}) == nil {
			t.Errorf("%d of %d bytes are not enough", needed-1, total)
		}
	}
}

var errDisk = errors.New("a broken disk")

func TestWithoutKnowingTheRoomNothingIsWritten(t *testing.T) {
	s := open(t, t.TempDir())
	s.space = func() (diskreserve.Space, error) { return diskreserve.Space{}, errDisk }
	sink := create(t, s, 1)
	if n, err := sink.Write([]byte("state")); n != 0 || !errors.Is(err, errDisk) {
		t.Errorf("%d bytes were written (%v)", n, err)
	}
}

// failingSink is the library's on a broken disk: write and end are what it answers.
type failingSink struct {
	raft.SnapshotSink
	write, end error
}

func (f failingSink) Write(b []byte) (int, error) { return len(b), f.write }
func (f failingSink) Close() error                { return f.end }
func (f failingSink) Cancel() error               { return f.end }

// TestASnapshotThatCannotBeSealedIsNone: raft learns of it, and the size of the newest is still that of the one before.
func TestASnapshotThatCannotBeSealedIsNone(t *testing.T) {
	for name, inner := range map[string]failingSink{"the seal": {write: errDisk}, "the end": {end: errDisk}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			keep(t, s, 1, "before")
			create(t, s, 2)
			sink := &sealingSink{SnapshotSink: inner, store: s}
			if err := sink.Close(); !errors.Is(err, errDisk) || s.NewestBytes() != int64(len("before")) {
				t.Errorf("closed with %v, the newest has %d bytes", err, s.NewestBytes())
			}
			if got := names(t, dir); inner.end != nil && len(got) != 1 {
				t.Errorf("its end left %q", got)
			}
			create(t, s, 3)
			if err := sink.Cancel(); !errors.Is(err, inner.end) || len(names(t, dir)) != 1 {
				t.Errorf("given up with %v, it left %q", err, names(t, dir))
			}
		})
	}
}

func TestWhereNoneCanBeNoneBegins(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := errors.Join(os.Remove(filepath.Join(dir, Dir)), os.WriteFile(filepath.Join(dir, Dir), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if sink, err := s.Create(raft.SnapshotVersionMax, 1, 1, raft.Configuration{}, 1, addresses{}); sink != nil || err == nil {
		t.Errorf("it began: %v (%v)", sink, err)
	}
	if s.KeepNewest() == nil {
		t.Error("the newest was kept where none can be")
	}
	if _, err := Open(filepath.Join(dir, Dir), slog.New(slog.DiscardHandler), errCorrupt); err == nil {
		t.Error("a file was opened as a folder")
	}
	if _, err := Open(filepath.Join(dir, "["), slog.New(slog.DiscardHandler), errCorrupt); err == nil {
		t.Error("a folder in which nothing can be looked for was opened")
	}
}

// TestOneThatIsGoneIsNotDamaged: a newer one has taken its place since it was listed, and is opened next.
func TestOneThatIsGoneIsNotDamaged(t *testing.T) {
	s := open(t, t.TempDir())
	keep(t, s, 1, "state")
	if _, _, err := s.Open("3-9-1"); err == nil || errors.Is(err, errCorrupt) || s.Failure() != nil {
		t.Errorf("opened with %v, and then %v", err, s.Failure())
	}
	if index, _, _, err := newest(t, s); index != 1 || err != nil {
		t.Errorf("the newest is %d (%v)", index, err)
	}
}

// TestNoFileStaysOpen, of a snapshot that is whole, and of one whose description is another's: a server opens them for years.
func TestNoFileStaysOpen(t *testing.T) {
	dir := t.TempDir()
	keep(t, open(t, dir), 1, "state")
	s := open(t, dir)
	if _, _, _, err := newest(t, s); err != nil || s.NewestBytes() != int64(len("state")) {
		t.Fatalf("%d bytes (%v)", s.NewestBytes(), err)
	}
	replaceIn(t, filepath.Join(dir, Dir, names(t, dir)[0], "meta.json"), `"Term":3`, `"Term":4`)
	if _, _, _, err := newest(t, s); !errors.Is(err, errCorrupt) {
		t.Fatal(err)
	}
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if target, err := os.Readlink(f); err == nil && strings.HasPrefix(target, dir) {
			t.Errorf("%s is open", target)
		}
	}
}

func replaceIn(t *testing.T, path, old, now string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || bytes.Count(text, []byte(old)) != 1 {
		t.Fatalf("%s has %q %d times (%v)", path, old, bytes.Count(text, []byte(old)), err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(now), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}
