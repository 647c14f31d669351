package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const purgesFolder = "/claims/purges/"

func withPurges(c *history.Config) { c.Purges, c.FileBytes = purgesFolder, 1 }

func putValue(t *testing.T, store *raftstoretest.Local, key, value string) {
	t.Helper()
	op := command.Op{Kind: command.Put, Key: key, UID: "u" + key, Value: []byte(value)}
	if _, err := store.Propose(t.Context(), command.Command{Ops: []command.Op{op}}); err != nil {
		t.Fatal(err)
	}
}

// onDisk reports whether the files of history have a text, compressed or not.
func onDisk(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i >= 0 && i < len(content); { // each frame of zstd, wherever it begins
			next := bytes.Index(content[i:], []byte{0x28, 0xb5, 0x2f, 0xfd})
			if next < 0 {
				break
			}
			i += next
			body := content[i:]
			if end := bytes.Index(body[1:], []byte("SPH1")); end >= 0 {
				body = body[:end+1]
			}
			raw, err := decoder.DecodeAll(body, nil)
			if err == nil && bytes.Contains(raw, []byte(text)) {
				return true
			}
			i++
		}
	}
	return false
}

// fill writes changes of a secret among others, of many files.
func fill(t *testing.T, store *raftstoretest.Local) {
	t.Helper()
	for i := range 200 {
		putValue(t, store, key(i%7), strings.Repeat(fmt.Sprintf("other %d ", i), 3000))
		if i%40 == 0 {
			putValue(t, store, "/core/secrets/n/s", fmt.Sprintf("canary-%d", i))
		}
	}
	putValue(t, store, "/core/secrets/n/s", "present")
}

// purged checks that a key's values are gone from memory and disk, that its changes are not, and that all else is as it was.
func purged(t *testing.T, h *history.History, store *raftstoretest.Local, dir string) {
	t.Helper()
	changes, holes, _, err := h.Changes(t.Context(), "/core/secrets/n/s", 0, 100)
	if err != nil || len(changes) != 6 || len(holes) > 0 {
		t.Fatal(len(changes), holes, err)
	}
	for _, c := range changes[1:] {
		if c.Before == nil || len(c.Before.Value) > 0 || c.Time.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	if string(changes[5].After.Value) != "present" {
		t.Errorf("the present is %q", changes[5].After.Value)
	}
	if onDisk(t, dir, "canary-") {
		t.Error("the values are on the disk")
	}
	for revision := uint64(1); revision < 200; revision += 17 {
		same(t, h, store, "/core/pods/", revision)
	}
}

// TestPurge: the values of an object are removed while history runs, and on a server that was away.
func TestPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dirs := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), []string{t.TempDir(), t.TempDir()}
		_, endAway := openHistory(t, store, dirs[1], withPurges)
		h, end := openHistory(t, store, dirs[0], withPurges)
		fill(t, store)
		synctest.Wait()
		endAway()
		if !onDisk(t, dirs[1], "canary-") {
			t.Fatal("the test does not see what is on the disk")
		}
		putValue(t, store, purgesFolder+"core/secrets/n/s", "x")
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		purged(t, h, store, dirs[0])
		end()
		for i, dir := range dirs { // the first one again, and the one that was away
			again, end := openHistory(t, store, dir, withPurges)
			time.Sleep(time.Minute)
			synctest.Wait()
			purged(t, again, store, dirs[i])
			if s := again.Status(); s.Purging > 0 || len(s.Holes) > 0 {
				t.Errorf("%+v", s)
			}
			end()
		}
	})
}

// behind is a store that was just started: it has the state of its last snapshot until the log is applied.
type behind struct {
	*raftstoretest.Local
	snapshot atomic.Pointer[state.Root]
}

func (b *behind) Root() *state.Root {
	if old := b.snapshot.Load(); old != nil {
		return old
	}
	return b.Local.Root()
}

// TestPurgeEndedByACrash: a server is stopped in the middle of a purge, of which no event tells it after the start, and its snapshot does
// not have it.
func TestPurgeEndedByACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := &behind{Local: raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})}, t.TempDir()
		_, end := openHistory(t, store, dir, withPurges)
		fill(t, store.Local)
		snapshot := store.Root()
		putValue(t, store.Local, purgesFolder+"core/secrets/n/s", "x")
		synctest.Wait() // for the first file
		end()
		if !onDisk(t, dir, "canary-") {
			t.Fatal("the purge is done already")
		}
		store.snapshot.Store(snapshot)
		again, end := openHistory(t, store, dir, withPurges)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := again.Status(); s.Purging == 0 {
			t.Errorf("nothing is left to do: %+v", s)
		}
		store.snapshot.Store(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		purged(t, again, store.Local, dir)
		if s := again.Status(); s.Purging > 0 || len(s.Holes) > 0 {
			t.Errorf("%+v", s)
		}
		end()
	})
}

// TestPurgeOfWhatCameMeanwhile: an object changed on while a server was away, and was then purged: the changes come after the state that has
// the purge, and the values do not stay on the disk.
func TestPurgeOfWhatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
		_, end := openHistory(t, store, dir, withPurges)
		putValue(t, store, "/core/secrets/n/s", "canary-before")
		synctest.Wait()
		end()
		putValue(t, store, "/core/secrets/n/s", "canary-meanwhile")
		putValue(t, store, "/core/secrets/n/s", "present")
		putValue(t, store, purgesFolder+"core/secrets/n/s", "x")
		_, end = openHistory(t, store, dir, withPurges)
		time.Sleep(time.Minute)
		synctest.Wait()
		end()
		if onDisk(t, dir, "canary-") {
			t.Error("the values are on the disk")
		}
	})
}

// TestAPurgedFileIsAsOld: it is kept no longer than it would be without the purge, also after a restart.
func TestAPurgedFileIsAsOld(t *testing.T) {
	store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
	h, end := openHistory(t, store, dir, withPurges)
	fill(t, store)
	if _, err := h.At(t.Context(), key(0), store.Root().Revision-1); err != nil { // it has all
		t.Fatal(err)
	}
	end()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	putValue(t, store, purgesFolder+"core/secrets/n/s", "x")
	h, end = openHistory(t, store, dir, withPurges)
	for h.Status().Purging > 0 || onDisk(t, dir, "canary-") {
		time.Sleep(time.Millisecond)
	}
	end()
	for _, path := range files[:len(files)-1] { // the newest one got the purge itself
		if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("%v %v", info.ModTime(), err)
		}
	}
}

// TestPurgeInASnapshot: a server that gets a snapshot with the purge in place of the log removes the values too.
func TestPurgeInASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, follower := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
		dir := t.TempDir()
		h, end := openHistory(t, follower, dir, withPurges)
		defer end()
		fill(t, leader)
		fill(t, follower)
		synctest.Wait()
		putValue(t, leader, purgesFolder+"core/secrets/n/s", "x")
		if err := follower.State().Restore(snapshotOf(t, leader.Root().Snapshot())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if onDisk(t, dir, "canary-") {
			t.Error("the values are on the disk")
		}
		if _, err := h.At(t.Context(), key(0), leader.Root().Revision); err != nil && !errors.Is(err, history.ErrHole) {
			t.Error(err)
		}
	})
}

// TestAwayTooLong: a server that was away for longer than purges are kept gives up what it had.
func TestAwayTooLong(t *testing.T) {
	store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
	h, end := openHistory(t, store, dir, withPurges)
	fill(t, store)
	if _, err := h.At(t.Context(), key(0), store.Root().Revision); err != nil {
		t.Fatal(err)
	}
	end()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	old := time.Now().Add(-history.PurgesKept - time.Hour)
	for _, path := range files {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	_, end = openHistory(t, store, dir, withPurges)
	defer end()
	for _, path := range files {
		if info, err := os.Stat(path); err == nil && info.ModTime().Equal(old) {
			t.Errorf("%s is still there", path)
		}
	}
}
