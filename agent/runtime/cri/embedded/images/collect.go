package images

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Use is what containers hold.
type Use struct {
	// Images are ids, Layers are directory names below Store.LayersDir.
	Images, Layers map[string]bool
}

// Add takes what one container has: its image, the layers of that, and those of images that are its volumes.
func (u Use) Add(image string, layers []string, volumes map[string][]string) {
	u.Images[image] = true
	for _, some := range append(slices.Collect(maps.Values(volumes)), layers) {
		for _, layer := range some {
			u.Layers[layer] = true
		}
	}
}

// Collected is what was removed.
type Collected struct {
	Images []Image
	// FreedBytes were in layers that nothing needs any more.
	FreedBytes uint64
}

// Collect removes all images that no container uses, except those that are kept.
func (s *Store) Collect(use Use) (Collected, error) {
	s.recording.Lock()
	defer s.recording.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var collected Collected
	var errs error
	sizes := map[string]uint64{}
	for id, image := range s.images {
		if use.Images[id] || image.Kept() {
			continue
		}
		if err := os.Remove(s.recordPath(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = errors.Join(errs, fmt.Errorf("remove image %s: %w", id, err))
			continue
		}
		delete(s.images, id)
		collected.Images = append(collected.Images, image)
		for _, layer := range image.Layers {
			sizes[layer], _ = s.sizes.settled(layer) // else it counts as nothing
		}
	}
	errs = errors.Join(errs, s.removeLayers(slices.Collect(maps.Keys(sizes)), use.Layers))
	for layer, size := range sizes {
		if _, err := os.Lstat(filepath.Join(s.LayersDir(), layer)); errors.Is(err, os.ErrNotExist) {
			collected.FreedBytes += size
		}
	}
	slices.SortFunc(collected.Images, func(a, b Image) int { return cmp.Compare(a.ID, b.ID) })
	return collected, errs
}
