package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	reserveName = "reserve"
	// reserveBytes is the size of the reserve, or reservePart of a smaller file
	// system.
	reserveBytes = 64 << 20
	reservePart  = 16
)

// reserve is a file that takes space while there is enough, to give it back when
// there is none: a full disk could not even write down a deletion. A nil reserve
// holds nothing.
type reserve struct {
	path string

	// mu is held over changes of the file.
	mu    sync.Mutex
	bytes int64
	held  bool
}

// openReserve finds the reserve below dir. If the disk is full it is dropped, so
// that the log can be opened.
func openReserve(dir string) (*reserve, error) {
	space, err := freeSpace(dir)
	if err != nil {
		return nil, err
	}
	r := &reserve{path: filepath.Join(dir, reserveName), bytes: min(reserveBytes, space.TotalBytes/reservePart)}
	r.held = fileSize(r.path) == r.bytes
	if !r.held || space.FreeBytes < r.bytes {
		return r, r.drop()
	}
	return r, nil
}

// missing is how much of the free space the reserve would still take.
func (r *reserve) missing() int64 {
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

// size is how many bytes the reserve has when it is held.
func (r *reserve) size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// make takes the space, unless that was done.
func (r *reserve) make() error {
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
	err = unix.Fallocate(int(file.Fd()), 0, 0, r.bytes)
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

// drop gives the space back.
func (r *reserve) drop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.remove()
}

// spend gives the space back at once and reports whether there was any.
func (r *reserve) spend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held && r.bytes > 0 && r.remove() == nil
}

func (r *reserve) remove() error {
	r.held = false
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("dropping the reserve: %w", err)
	}
	return nil
}

// freeSpace asks the file system of a path. What only root may use is not free.
func freeSpace(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return Space{FreeBytes: int64(s.Bavail) * s.Bsize, TotalBytes: int64(s.Blocks) * s.Bsize}, nil
}
