package replica

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/setpoint-io/setpoint/internal/durable"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

// Disk is where storages are opened, and what they hold is set aside when it must
// not be used.
type Disk interface {
	// Open opens what is there.
	Open(ctx context.Context) (*Storage, error)
	// setAside moves the log and the snapshots out of the way, durably, and leaves
	// an empty disk for the member id that next names. No storage of it may be open.
	setAside(next *marks.Marker) error
	// markers keeps the marker, whatever state the rest is in.
	markers() marks.Store
}

// Files is a data directory.
type Files struct {
	Dir    string
	Logger *slog.Logger
}

var _ Disk = Files{}

// marksDir is where the marker and the watermark lie.
const marksDir = "state-marker"

// quarantinePrefix names the directory below Dir that holds what was set aside.
// The newest is kept, for whoever wants to know what happened.
const quarantinePrefix = "quarantine-"

// Open implements Disk. It ends a setting aside that was interrupted.
func (f Files) Open(ctx context.Context) (*Storage, error) {
	mark, err := f.markers().Load()
	if err == nil && mark != nil && mark.State == marks.Discarding {
		if err := f.setAside(mark); err != nil {
			return nil, err
		}
	}
	return OpenFiles(ctx, f.Dir, f.Logger)
}

func (f Files) markers() marks.Store { return f.marks() }

func (f Files) marks() marks.Dir {
	return marks.Dir(filepath.Join(f.Dir, marksDir))
}

// setAside implements Disk. Each step may be repeated after a power cut.
func (f Files) setAside(next *marks.Marker) error {
	if err := f.markers().Save(next.With(marks.Discarding)); err != nil {
		return err
	}
	if err := f.quarantine(); err != nil {
		return fmt.Errorf("setting the damaged data aside: %w", err)
	}
	// It says how far the old member's log reached, and may be what is damaged.
	if err := f.marks().RemoveWatermark(); err != nil {
		return err
	}
	return f.markers().Save(next.With(marks.Joining))
}

func (f Files) quarantine() error {
	if !exists(filepath.Join(f.Dir, "raft")) && !exists(filepath.Join(f.Dir, "snapshots")) {
		return nil
	}
	old, err := filepath.Glob(filepath.Join(f.Dir, quarantinePrefix+"*"))
	if err != nil {
		return err
	}
	target := filepath.Join(f.Dir, quarantinePrefix+time.Now().UTC().Format("20060102T150405Z"))
	if len(old) > 0 && !exists(filepath.Join(f.Dir, "raft")) {
		target = old[len(old)-1] // a power cut came between the two moves
		old = old[:len(old)-1]
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(target, dirMode); err != nil {
		return err
	}
	for _, sub := range []string{"raft", "snapshots"} {
		err := os.Rename(filepath.Join(f.Dir, sub), filepath.Join(target, sub))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return durable.SyncFolder(f.Dir)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// MemoryDisk makes a Memory a Disk.
type MemoryDisk struct{ Memory *Memory }

var _ Disk = MemoryDisk{}

// Open implements Disk.
func (d MemoryDisk) Open(context.Context) (*Storage, error) {
	return d.Memory.openFiles(d.Memory.Open())
}

func (d MemoryDisk) markers() marks.Store { return d.Memory.Open().marks }

// setAside implements Disk; what was there is gone.
func (d MemoryDisk) setAside(next *marks.Marker) error {
	d.Memory.Wipe()
	return d.markers().Save(next.With(marks.Joining))
}

// Wipe empties the disk, as a new one in its place would be.
func (m *Memory) Wipe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	empty := NewMemory()
	m.generation++
	if m.Files != nil {
		m.Files.Wipe()
	}
	m.logs, m.durable, m.stable, m.snapshots, m.mark, m.water = empty.logs, 0, empty.stable, nil, nil, marks.Watermark{}
}

// FlipBit changes one bit of a log entry on the disk, somewhere in the middle, and
// reports whether there was one.
func (m *Memory) FlipBit() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logs.FlipBit()
}
