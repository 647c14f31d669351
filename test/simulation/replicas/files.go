package replicas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/replica"
	"github.com/setpoint-io/setpoint/raftstore/replica/memorylog"
	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
)

const (
	// firstBytes and mostBytes are the sizes of segments: small, so that a snapshot ends behind the beginning of the newest.
	firstBytes, mostBytes = 8 << 10, 8 << 10
	// sectorBytes are written as a whole, or not at all.
	sectorBytes = 512
)

// files keep the log of a server in real files, and know what of them is on the disk. A power cut keeps that, and of everything
// that was written since some sectors, and some of the names.
type files struct {
	base string

	mu     sync.Mutex
	random *rand.Rand
	// life counts the power cuts: each leaves a folder of its own, so that what still runs writes to the old one.
	life int
	// synced is what is on the disk of each file, names what the folder is there.
	synced map[uint64][]byte
	names  map[string]uint64
	delay  time.Duration
	// held is closed when syncs go on that wait in a pause, nil if there is none.
	held chan struct{}
	// failing is what every sync fails with, nil if it does not.
	failing error
	// keeps: the next cut is the end of a process, and no power cut.
	keeps bool
}

var _ memorylog.Files = (*files)(nil)

func newFiles(base string, seed uint64) *files {
	return &files{base: base, random: rand.New(rand.NewPCG(seed, 3)), synced: map[uint64][]byte{}, names: map[string]uint64{}, delay: syncTime}
}

func (f *files) dir() string { return filepath.Join(f.base, fmt.Sprint(f.life)) }

// Open implements memorylog.Files.
func (f *files) Open() (*segments.Log, error) {
	f.mu.Lock()
	dir, life := f.dir(), f.life
	f.mu.Unlock()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return segments.OpenWith(dir, func(file *os.File) error { return f.sync(life, dir, file) }, firstBytes, mostBytes)
}

// Wipe implements memorylog.Files.
func (f *files) Wipe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.life++
	f.synced, f.names = map[uint64][]byte{}, map[string]uint64{}
}

// sync brings a file, or the names in the folder, to the disk. What is written meanwhile is not.
func (f *files) sync(life int, dir string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var content []byte
	var names map[string]uint64
	if !info.IsDir() {
		content, err = io.ReadAll(io.NewSectionReader(file, 0, info.Size()))
	} else if file.Name() == dir {
		names, err = namesIn(dir)
	}
	if err != nil {
		return err
	}
	f.wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.life != life:
		return replica.ErrCrashed
	case f.failing != nil:
		return f.failing
	case content != nil:
		f.synced[inode(info)] = content
	case names != nil:
		f.names = names
	}
	return nil
}

func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

func namesIn(dir string) (map[string]uint64, error) {
	names := map[string]uint64{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, failed := e.Info()
		if errors.Is(failed, os.ErrNotExist) {
			continue
		}
		if failed != nil {
			return nil, failed
		}
		names[e.Name()] = inode(info)
	}
	return names, err
}

// cut cuts the power: the next Open finds what was on the disk, and some of what was on its way there.
func (f *files) cut() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	written, err := f.written()
	if err != nil {
		return err
	}
	names, err := namesIn(f.dir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	defer func() { f.keeps = false }()
	if !f.keeps && f.random.IntN(2) == 0 { // the folder as it was synced last, or as it is
		names = f.names
	}
	f.life++
	if err := os.MkdirAll(f.dir(), 0o700); err != nil {
		return err
	}
	synced := map[uint64][]byte{}
	for _, name := range sortedKeys(names) {
		path := filepath.Join(f.dir(), name)
		content := f.torn(f.synced[names[name]], written[names[name]])
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		names[name] = inode(info)
		synced[inode(info)] = content
	}
	f.names, f.synced = names, synced
	return nil
}

// written is what each file holds now. Of one that was removed that is not known any more: it is as it was synced.
func (f *files) written() (map[uint64][]byte, error) {
	names, err := namesIn(f.dir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	contents := map[uint64][]byte{}
	for name, number := range names {
		if contents[number], err = os.ReadFile(filepath.Join(f.dir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return contents, nil
}

// torn is what a power cut leaves of a file: of the sectors that were written and not synced some, in no order.
func (f *files) torn(synced, written []byte) []byte {
	if written == nil {
		return synced
	}
	keep := f.random.IntN(3) // nothing, some or all of it
	if f.keeps {
		keep = 2
	}
	left := bytes.Clone(synced)
	for at := 0; at < len(written); at += sectorBytes {
		end := min(at+sectorBytes, len(written))
		if end <= len(synced) && bytes.Equal(synced[at:end], written[at:end]) {
			continue
		}
		if keep == 2 || keep == 1 && f.random.IntN(2) == 0 {
			if len(left) < end {
				left = append(left, make([]byte, end-len(left))...)
			}
			copy(left[at:end], written[at:end])
		}
	}
	return left
}

func (f *files) setDelay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// fails reports whether syncs fail now.
func (f *files) fails() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing != nil
}

// keepNext makes the next cut the end of a process only.
func (f *files) keepNext() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keeps = true
}

func (f *files) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = err
}
