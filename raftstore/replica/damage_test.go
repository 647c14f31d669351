package replica

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/entrysum"
)

var (
	damages    = flag.Int("damages", 60, "how many damages TestDamageIsNeverSilent tries")
	damageSeed = flag.Uint64("damage-seed", 1, "chooses the damages")
)

// image is the files of a data directory, by their path in it.
type image map[string][]byte

func readImage(t *testing.T, dir string) image {
	t.Helper()
	files := image{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "reserve" {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (f image) write(t *testing.T, dir string) {
	t.Helper()
	for path, data := range f {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, fileMode); err != nil {
			t.Fatal(err)
		}
	}
}

// held is what a replica must not forget: its state, log, term and vote.
type held struct {
	hash    [16]byte
	entries map[uint64]uint32
	last    uint64
	term    uint64
}

// heldBy reads it of a lone voter that has just been elected: it has added one
// entry and one term of its own.
func heldBy(t *testing.T, r *Replica) held {
	t.Helper()
	h := held{entries: map[uint64]uint32{}, term: r.Term()}
	_, h.hash = r.State().Hash()
	first, _ := r.log.FirstIndex()
	h.last, _ = r.log.LastIndex()
	for i := first; i < h.last; i++ {
		var l raft.Log
		if err := r.log.GetLog(i, &l); err != nil {
			t.Fatal(err)
		}
		h.entries[i] = entrysum.Sum(&l)
	}
	return h
}

// writeHistory makes a directory with two snapshots and a log behind them, in
// several runs, and returns the directory after each of them.
func writeHistory(t *testing.T, dir string) (copies []image) {
	t.Helper()
	for run := range 4 {
		r, err := openLone(t, dir, func(c *Config) { c.Timing.SnapshotBytes = 10_000 })
		if err != nil {
			t.Fatal(err)
		}
		waitLeader(t, r)
		for i := range 150 {
			writeKey(t, r, 150*run+i)
		}
		if err := r.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			writeKey(t, r, i)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, readImage(t, dir))
	}
	return copies
}

// logPath is the file that gets half of the damages.
const logPath = "raft/log/0000000000000001.log"

// damage changes one file of an image and says how; now is shared, its files are
// not changed in place.
func damage(random *rand.Rand, now image, before []image) (changed image, path, what string) {
	paths := slices.Sorted(maps.Keys(now))
	if path = logPath; random.IntN(2) == 0 {
		path = paths[random.IntN(len(paths))]
	}
	changed = maps.Clone(now)
	data := slices.Clone(now[path])
	switch kind := random.IntN(20); {
	case kind < 15:
		at, bit := random.IntN(len(data)), random.IntN(8)
		data[at] ^= 1 << bit
		what = fmt.Sprintf("bit %d of byte %d", bit, at)
	case kind < 17:
		data = data[:random.IntN(len(data))]
		what = fmt.Sprintf("cut to %d bytes", len(data))
	case kind == 17:
		data, what = nil, "emptied"
	case kind == 18:
		delete(changed, path)
		return changed, path, "removed"
	default:
		data, what = oldCopy(random, before, path)
	}
	changed[path] = data
	return changed, path, what
}

// oldCopy returns an earlier content of a file. For a file of a snapshot that is
// one of an earlier snapshot.
func oldCopy(random *rand.Rand, before []image, path string) ([]byte, string) {
	old := before[random.IntN(len(before))]
	if data, ok := old[path]; ok {
		return data, "an old copy"
	}
	for _, other := range slices.Sorted(maps.Keys(old)) {
		if filepath.Base(other) == filepath.Base(path) {
			return old[other], "an older snapshot's"
		}
	}
	return nil, "emptied"
}

// tally counts what became of the damages to files of one name.
type tally struct{ detected, harmless, silent int }

// Whatever happens to one file, a replica either refuses to start or has lost
// nothing.
func TestDamageIsNeverSilent(t *testing.T) {
	dir := t.TempDir()
	copies := writeHistory(t, dir)
	now, before := copies[len(copies)-1], copies[:len(copies)-1]
	want, err := openImage(t, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.entries) < 100 || len(now) < 7 {
		t.Fatalf("too little to damage: %d entries, files %v", len(want.entries), slices.Sorted(maps.Keys(now)))
	}
	random := rand.New(rand.NewPCG(*damageSeed, 0))
	table := map[string]*tally{}
	for range *damages {
		changed, path, what := damage(random, now, before)
		row := table[filepath.Base(path)]
		if row == nil {
			row = &tally{}
			table[filepath.Base(path)] = row
		}
		switch got, err := openImage(t, changed); {
		case errors.Is(err, ErrCorrupt), errors.Is(err, ErrStateLost), errors.Is(err, ErrForeignData):
			row.detected++
		case err != nil:
			row.silent++
			t.Errorf("%s, %s: refused without naming the damage: %v", path, what, err)
		case forgot(want, got) != "":
			row.silent++
			t.Errorf("%s, %s: %s", path, what, forgot(want, got))
		default:
			row.harmless++
		}
	}
	t.Logf("%-16s %9s %9s %7s", "file", "detected", "harmless", "silent")
	for _, name := range slices.Sorted(maps.Keys(table)) {
		t.Logf("%-16s %9d %9d %7d", name, table[name].detected, table[name].harmless, table[name].silent)
	}
}

// openImage opens a copy of the files and returns what the replica has kept. It
// must also take a write.
func openImage(t *testing.T, files image) (held, error) {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	files.write(t, dir)
	r, err := openLone(t, dir, nil)
	if err != nil {
		return held{}, err
	}
	defer r.Close()
	if !leadsOrStops(t, r) {
		return held{}, r.Failed()
	}
	h := heldBy(t, r)
	writeKey(t, r, 999)
	return h, nil
}

// forgot says what of want is missing, "" if nothing.
func forgot(want, got held) string {
	switch {
	case got.hash != want.hash:
		return "the state is another"
	case got.term != want.term:
		return fmt.Sprintf("the term is %d, it was %d", got.term, want.term)
	case got.last != want.last:
		return fmt.Sprintf("the log ends at %d, it was %d", got.last, want.last)
	}
	for index, sum := range want.entries {
		if found, ok := got.entries[index]; ok && found != sum {
			return fmt.Sprintf("entry %d is another", index)
		}
	}
	return ""
}
