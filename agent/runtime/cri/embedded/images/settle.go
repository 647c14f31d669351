package images

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

// settle makes those of the layers count that this process unpacked: their content is brought to the disk, all at once, and then
// each one's size is written beside it. A layer without a size may be what a power cut left of it, and is unpacked again.
// Pulls that share a layer settle it once, one after the other.
func (s *Store) settle(layers []string) error {
	s.settling.Lock()
	defer s.settling.Unlock()
	sizes := s.notSettled(layers)
	if len(sizes) == 0 {
		return nil
	}
	if err := s.syncfs(s.LayersDir()); err != nil {
		return err
	}
	for name, size := range sizes {
		if err := private.WriteFile(s.sizePath(name), []byte(strconv.FormatUint(size, 10))); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range sizes {
		delete(s.unsettled, name)
	}
	return nil
}

// notSettled are the sizes of those that were unpacked and do not count yet. Images that are pulled beside each other may share some.
func (s *Store) notSettled(layers []string) map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sizes := map[string]uint64{}
	for _, name := range layers {
		if size, unpacked := s.unsettled[name]; unpacked {
			sizes[name] = size
		}
	}
	return sizes
}

// layerSize is the unpacked size of a layer that counts, or that this process unpacked.
func (s *Store) layerSize(name string) (uint64, error) {
	s.mu.Lock()
	size, unpacked := s.unsettled[name]
	s.mu.Unlock()
	if unpacked {
		return size, nil
	}
	return s.settledSize(name)
}

// settledSize is the unpacked size of a layer that counts. What a power cut may have left of the file is no number.
func (s *Store) settledSize(name string) (uint64, error) {
	data, err := os.ReadFile(s.sizePath(name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(data), 10, 64)
}

func (s *Store) sizePath(name string) string { return filepath.Join(s.sizesDir(), name) }

// syncfs returns when all that was written to the file system of dir is on the disk, whoever wrote it: an image has thousands of files, and
// to sync one after the other takes longer.
func syncfs(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(folder.Fd()))), folder.Close())
}
