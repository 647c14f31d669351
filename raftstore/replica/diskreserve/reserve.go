package diskreserve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/raftstore/replica/eintr"
)

const (
	name = "reserve"
	// sizeBytes is the size of the reserve, or one part in sizePart of a smaller file
	// system.
	sizeBytes = 64 << 20
	sizePart  = 16
	fileMode  = 0o600
)

// Reserve is a file that takes space while there is enough, to give it back when
// there is none: a full disk could not even write down a deletion. A nil Reserve
// holds nothing. Its methods may be called from many goroutines.
type Reserve struct {
	path string

	// mu is held over changes of the file.
	mu    sync.Mutex
	bytes int64
	held  bool
}

// Space is the room on a file system, in bytes. The zero value has no bounds.
type Space struct {
	FreeBytes, TotalBytes int64
}

// New describes a reserve of that many bytes, not yet held.
func New(path string, bytes int64) *Reserve { return &Reserve{path: path, bytes: bytes} }

// Open finds the reserve below dir. If the disk is full it is dropped, so
// that the log can be opened.
func Open(dir string) (*Reserve, error) {
	space, err := FreeSpace(dir)
	if err != nil {
		return nil, err
	}
	r := New(filepath.Join(dir, name), min(sizeBytes, space.TotalBytes/sizePart))
	r.held = hasSize(r.path, r.bytes)
	if !r.held || space.FreeBytes < r.bytes {
		return r, r.Drop()
	}
	return r, nil
}

// Missing is how much of the free space the reserve would still take.
func (r *Reserve) Missing() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return 0
	}
	return r.bytes
}

// Held is how much of the disk the reserve takes now.
func (r *Reserve) Held() int64 {
	if r == nil {
		return 0
	}
	return r.Size() - r.Missing()
}

// Size is how many bytes the reserve has when it is held.
func (r *Reserve) Size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// Make takes the space, unless that was done.
func (r *Reserve) Make() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return nil
	}
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("making the reserve: %w", err)
	}
	defer file.Close()
	err = allocate(file, r.bytes)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		// This file system cannot promise space: there is no reserve on it.
		err, r.bytes = r.remove(), 0
	}
	if err != nil {
		return errors.Join(fmt.Errorf("making the reserve: %w", err), r.remove())
	}
	r.held = true
	return nil
}

// Drop gives the space back.
func (r *Reserve) Drop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.remove()
}

// Spend gives the space back at once and reports whether there was any.
func (r *Reserve) Spend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held && r.bytes > 0 && r.remove() == nil
}

func (r *Reserve) remove() error {
	r.held = false
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("dropping the reserve: %w", err)
	}
	return nil
}

// FreeSpace asks the file system of a path. What only root may use is not free.
func FreeSpace(path string) (Space, error) {
	var s unix.Statfs_t
	if err := eintr.Retry(func() error { return unix.Statfs(path, &s) }); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	size := int64(s.Bsize) // another type on other systems
	return Space{FreeBytes: int64(s.Bavail) * size, TotalBytes: int64(s.Blocks) * size}, nil
}

func hasSize(path string, bytes int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == bytes
}
