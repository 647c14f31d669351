package images

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestALayerCountsOnceItIsOnTheDisk: a sync that fails leaves no size, and without one the layer is unpacked again.
func TestALayerCountsOnceItIsOnTheDisk(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	image := imageOf(t, layerTar(t, entry{name: "bin/app", content: "whole"}))
	noDisk := errors.New("input/output error")
	s.sizes.syncfs = func(dir string) error {
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
	s.sizes.syncfs = syncfs
	if _, err := s.add(image, Image{Tags: []string{"docker.io/library/x:1"}}); err != nil {
		t.Error(err)
	}
	s.sizes.syncfs = nil // what counts is not synced again
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
	if err := errors.Join(os.Truncate(app, 0), os.Truncate(s.sizes.path(stored.Layers[0]), 0)); err != nil {
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

// TestALocalImageCountsAfterANewStart: containers may run from its layer, which is neither forgotten nor made again.
func TestALocalImageCountsAfterANewStart(t *testing.T) {
	dir, filled := t.TempDir(), 0
	local := Local{Tag: "setpoint.local/demo:1", LayerKey: "key", Fill: func(dir string) (uint64, error) {
		filled++
		return 1, os.WriteFile(filepath.Join(dir, "app"), []byte("a"), 0o755)
	}}
	for range 2 {
		s := openStore(t, dir, "")
		if _, err := s.Get(local.Tag); (filled == 0) != errors.Is(err, ErrNotFound) {
			t.Errorf("filled %d times: %v", filled, err)
		}
		if _, err := s.AddLocal(local); err != nil {
			t.Error(err)
		}
	}
	if filled != 1 {
		t.Errorf("made %d times", filled)
	}
}

// TestPullsThatShareALayer settle it one after the other, and none loses it to what is removed meanwhile.
func TestPullsThatShareALayer(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	layer := layerTar(t, entry{name: "bin/app", content: "shared"})
	s.sizes.syncfs = func(string) error { return s.Prune(nil) }
	var pulls errgroup.Group
	for i := range 20 {
		pulls.Go(func() error {
			own := layerTar(t, entry{name: "own", content: strconv.Itoa(i)})
			stored, err := s.add(imageOf(t, layer, own), Image{Tags: []string{"docker.io/library/x:" + strconv.Itoa(i)}})
			for _, name := range stored.Layers {
				_, gone := os.Stat(filepath.Join(s.LayersDir(), name))
				_, unsettled := s.sizes.settled(name)
				err = errors.Join(err, gone, unsettled)
			}
			return err
		})
	}
	if err := pulls.Wait(); err != nil {
		t.Error(err)
	}
	if len(s.wanted) > 0 || len(s.sizes.unsettled) > 0 {
		t.Errorf("left: wanted %v, unsettled %v", s.wanted, s.sizes.unsettled)
	}
}
