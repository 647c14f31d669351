package images

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestALayerCountsOnceItIsOnTheDisk: a sync that fails leaves no size, and without one the layer is unpacked again.
func TestALayerCountsOnceItIsOnTheDisk(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	image := imageOf(t, layerTar(t, entry{name: "bin/app", content: "whole"}))
	noDisk := errors.New("input/output error")
	s.syncfs = func(dir string) error {
		if written, err := filepath.Glob(filepath.Join(dir, "*/bin/app")); len(written) != 1 || err != nil {
			t.Errorf("synced before the layer was there: %v %v", written, err)
		}
		if sizes, err := os.ReadDir(s.sizesDir()); len(sizes) > 0 || err != nil {
			t.Errorf("the layer counts before it is synced: %v %v", sizes, err)
		}
		return noDisk
	}
	if _, err := s.add(image, Image{Tags: []string{"docker.io/library/x:1"}}); !errors.Is(err, noDisk) {
		t.Errorf("%v, not %v", err, noDisk)
	}
	s.syncfs = syncfs
	if _, err := s.add(image, Image{Tags: []string{"docker.io/library/x:1"}}); err != nil {
		t.Error(err)
	}
	s.syncfs = nil // what counts is not synced again
	if _, err := s.add(image, Image{Tags: []string{"docker.io/library/x:2"}}); err != nil {
		t.Error(err)
	}
}

// TestWhatAPowerCutLeft: names without content, as file systems with delayed allocation keep them. The image is unpacked again.
func TestWhatAPowerCutLeft(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "")
	image, tag := imageOf(t, layerTar(t, entry{name: "bin/app", content: "whole"})), "docker.io/library/x:1"
	stored, err := s.add(image, Image{Tags: []string{tag}})
	if err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(s.LayersDir(), stored.Layers[0], "bin/app")
	if err := errors.Join(os.Truncate(app, 0), os.Truncate(s.sizePath(stored.Layers[0]), 0)); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, "")
	if _, err := s.Get(tag); !errors.Is(err, ErrNotFound) {
		t.Errorf("an image with a layer in parts counts: %v", err)
	}
	if _, err := s.add(image, Image{Tags: []string{tag}}); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(app); string(content) != "whole" {
		t.Errorf("%q %v", content, err)
	}
}
