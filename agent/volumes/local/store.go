package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/setpoint-io/setpoint/internal/durable"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

const (
	dataName = "data" // the folder of a volume with a file system
	diskName = "disk" // the file behind a block device

	making   = ".making-"   // begins what is not a volume yet
	removing = ".removing-" // begins what is none any more

	// folderMode: whoever a pod runs as may write, as in an emptyDir. Only root gets through the folders above.
	folderMode = 0o777
)

var (
	// ErrHandle is returned for a handle that no claim has.
	ErrHandle = errors.New("invalid handle of a local volume")
	// ErrMode is returned for a volume that is there in the other mode.
	ErrMode = errors.New("the volume has the other volumeMode")
	// ErrSize is returned for a size out of range.
	ErrSize = errors.New("invalid size of a local volume")
)

// Store are the volumes in one folder. It is safe for concurrent use.
type Store struct {
	dir string
	mu  sync.Mutex // held while volumes and loop devices come and go
}

// Open takes a folder, which must exist, and clears what an earlier agent did not finish.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !localvolume.Valid(e.Name()) && (strings.HasPrefix(e.Name(), making) || strings.HasPrefix(e.Name(), removing)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return s, err
}

// Make makes a volume, or enlarges the one that is there.
func (s *Store) Make(handle string, want localvolume.Volume) (localvolume.Volume, error) {
	if err := check(handle, want); err != nil {
		return want, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := filepath.Join(s.dir, handle)
	if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		if err := s.create(at, filepath.Join(s.dir, making+handle), want.Block); err != nil {
			return want, err
		}
	} else if err != nil {
		return want, err
	}
	var err error
	want.Enforced, err = s.size(at, want)
	return want, err
}

func check(handle string, want localvolume.Volume) error {
	if !localvolume.Valid(handle) {
		return fmt.Errorf("%w: %q", ErrHandle, handle)
	}
	if want.Bytes <= 0 || want.Bytes > localvolume.BytesMax {
		return fmt.Errorf("%w: %d bytes", ErrSize, want.Bytes)
	}
	return nil
}

// create makes the volume aside and renames it, so that there is no half of one.
func (s *Store) create(at, aside string, block bool) error {
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	if block {
		if err := os.WriteFile(filepath.Join(aside, diskName), nil, 0o600); err != nil {
			return err
		}
	} else if err := makeFolder(filepath.Join(aside, dataName)); err != nil {
		return err
	}
	if err := os.Rename(aside, at); err != nil {
		return err
	}
	return durable.SyncFolder(s.dir) // a volume that was reported must be there after a power cut
}

func makeFolder(path string) error {
	if err := os.Mkdir(path, folderMode); err != nil {
		return err
	}
	return os.Chmod(path, folderMode) // past the umask
}

// size gives the volume its size and tells whether that is enforced.
func (s *Store) size(at string, want localvolume.Volume) (enforced bool, err error) {
	if want.Block {
		return true, growDisk(filepath.Join(at, diskName), want.Bytes)
	}
	data := filepath.Join(at, dataName)
	if _, err := os.Lstat(data); errors.Is(err, fs.ErrNotExist) {
		return false, ErrMode
	}
	return limit(s.dir, data, want.Bytes) == nil, nil // a volume without a limit is better than none: the answer tells
}

// growDisk enlarges the file, which stays sparse, and the device that it may be behind.
func growDisk(disk string, bytes int64) error {
	info, err := os.Lstat(disk)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrMode
	}
	if err != nil {
		return err
	}
	if info.Size() < bytes {
		if err := os.Truncate(disk, bytes); err != nil {
			return err
		}
	}
	return resizeLoop(disk)
}

// Remove removes a volume and its data; with onlyEmpty one with data stays. One that is not there is no error.
func (s *Store) Remove(handle string, onlyEmpty bool) error {
	if !localvolume.Valid(handle) {
		return fmt.Errorf("%w: %q", ErrHandle, handle)
	}
	s.mu.Lock()
	at, aside := filepath.Join(s.dir, handle), filepath.Join(s.dir, removing+handle)
	err := s.setAside(at, aside, onlyEmpty)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return os.RemoveAll(aside) // may take long: nobody waits for it
}

func (s *Store) setAside(at, aside string, onlyEmpty bool) error {
	if onlyEmpty && !empty(at) {
		return nil
	}
	if err := detach(filepath.Join(at, diskName)); err != nil {
		return err
	}
	if err := os.RemoveAll(aside); err != nil { // an earlier removal that was cut short
		return err
	}
	if err := os.Rename(at, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncFolder(s.dir)
}

// empty tells whether nothing was ever written to a volume, or it was all deleted.
func empty(at string) bool {
	if entries, err := os.ReadDir(filepath.Join(at, dataName)); err == nil {
		return len(entries) == 0
	}
	used, err := blocksOf(filepath.Join(at, diskName))
	return err == nil && used == 0
}

// List are the handles of all volumes.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	var handles []string
	for _, e := range entries {
		if localvolume.Valid(e.Name()) {
			handles = append(handles, e.Name())
		}
	}
	return handles, err
}

// Folder is where the files of a volume are.
func (s *Store) Folder(handle string) (string, error) {
	return s.part(handle, dataName)
}

func (s *Store) part(handle, name string) (string, error) {
	if !localvolume.Valid(handle) {
		return "", fmt.Errorf("%w: %q", ErrHandle, handle)
	}
	path := filepath.Join(s.dir, handle, name)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("this node does not have the data of local volume %s", handle)
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// Use makes the block device of a volume and gives its path. note keeps on disk that it is in use, before it is.
func (s *Store) Use(handle string, note func() error) (device string, err error) {
	disk, err := s.part(handle, diskName)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := note(); err != nil {
		return "", err
	}
	return attach(disk)
}

// Release gives the block device of a volume back, unless used says that somebody has it.
func (s *Store) Release(handle string, used func() (bool, error)) error {
	if !localvolume.Valid(handle) {
		return fmt.Errorf("%w: %q", ErrHandle, handle)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in, err := used(); err != nil || in {
		return err
	}
	return detach(filepath.Join(s.dir, handle, diskName))
}
