package images

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

// sizes are the unpacked sizes of layers, a file for each layer that counts: its content was on the disk before. A layer without one may be
// what a power cut left of it, and is unpacked again. Methods are safe for concurrent use.
type sizes struct {
	dir, layersDir string
	// syncfs brings to the disk what was written to a folder, and to all of its file system.
	syncfs func(dir string) error

	// settling is held by who settles layers; mu guards unsettled.
	settling, mu sync.Mutex
	// unsettled are layers that this process unpacked and that may not be on the disk yet.
	unsettled map[string]uint64
}

func newSizes(dir, layersDir string) *sizes {
	return &sizes{dir: dir, layersDir: layersDir, syncfs: syncfs, unsettled: map[string]uint64{}}
}

// unpacked notes a layer that is there whole, as readers see it.
func (s *sizes) unpacked(name string, size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsettled[name] = size
}

// settle makes those of the layers count that were unpacked: their content is brought to the disk, all at once, and then each one's size is
// written. Pulls that share a layer settle it once, one after the other.
func (s *sizes) settle(layers []string) error {
	s.settling.Lock()
	defer s.settling.Unlock()
	unsettled := s.of(layers)
	if len(unsettled) == 0 {
		return nil
	}
	if err := s.syncfs(s.layersDir); err != nil {
		return err
	}
	for name, size := range unsettled {
		if err := private.WriteFile(s.path(name), []byte(strconv.FormatUint(size, 10))); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range unsettled {
		delete(s.unsettled, name)
	}
	return nil
}

// of returns those of the layers that do not count yet.
func (s *sizes) of(layers []string) map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := map[string]uint64{}
	for _, name := range layers {
		if size, unsettled := s.unsettled[name]; unsettled {
			some[name] = size
		}
	}
	return some
}

// get returns the size of a layer that counts, or that this process unpacked.
func (s *sizes) get(name string) (uint64, error) {
	if size, unsettled := s.of([]string{name})[name]; unsettled {
		return size, nil
	}
	return s.settled(name)
}

// settled returns the size of a layer that counts. What a power cut may have left of the file is no number.
func (s *sizes) settled(name string) (uint64, error) {
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(data), 10, 64)
}

// forget is for a layer that is removed.
func (s *sizes) forget(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unsettled, name)
	return os.RemoveAll(s.path(name))
}

func (s *sizes) path(name string) string { return filepath.Join(s.dir, name) }

// syncfs returns when all that was written to the file system of dir is on the disk, whoever wrote it: an image has thousands of files, and
// to sync one after the other takes longer.
func syncfs(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(folder.Fd()))), folder.Close())
}
