package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"
)

// layersParallelMax is how many layers of one image are fetched and unpacked at the same time.
const layersParallelMax = 3

// layerNameDigits keeps directory names short (overlay options must fit in one page) and still unique.
const layerNameDigits = 24

func layerName(diffID v1.Hash) string { return diffID.Hex[:layerNameDigits] }

// add unpacks the image's missing layers and records it under the names, all that is set in record.
func (s *Store) add(image v1.Image, record Image) (Image, error) {
	return s.addFrom(nil, image, v1.Layer.Uncompressed, record)
}

// addFrom asks the others for a layer before it opens the image's.
func (s *Store) addFrom(others *others, image v1.Image, open openLayer, record Image) (Image, error) {
	id, err := image.ConfigName()
	if err != nil {
		return Image{}, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return Image{}, err
	}
	layers, err := image.Layers()
	if err != nil {
		return Image{}, err
	}
	if len(layers) > layersMax {
		return Image{}, errTooManyLayers
	}
	if len(layers) != len(file.RootFS.DiffIDs) {
		return Image{}, fmt.Errorf("%w: %d layers, %d diff ids", ErrDigestMismatch, len(layers), len(file.RootFS.DiffIDs))
	}
	record.ID, record.Config, record.LoadedAt = id.String(), file.Config, time.Now()
	for _, diffID := range file.RootFS.DiffIDs {
		record.Layers = append(record.Layers, layerName(diffID))
	}
	return s.keep(record, func() (uint64, error) {
		var size atomic.Uint64
		var group errgroup.Group
		group.SetLimit(layersParallelMax)
		for i, layer := range layers {
			group.Go(func() error {
				bytes, err := s.addLayer(others, file.RootFS.DiffIDs[i], layer, open)
				size.Add(bytes)
				return err
			})
		}
		err := group.Wait()
		return size.Load(), err
	})
}

// keep has unpack make the layers of an image, whose size it returns, and stores the image once they are on the disk.
// None of them is removed meanwhile.
func (s *Store) keep(image Image, unpack func() (sizeBytes uint64, err error)) (Image, error) {
	s.want(image.Layers, 1)
	defer s.want(image.Layers, -1)
	var err error
	if image.SizeBytes, err = unpack(); err != nil {
		return Image{}, err
	}
	if err := s.sizes.settle(image.Layers); err != nil {
		return Image{}, err
	}
	return s.put(image)
}

// want says that a pull needs these layers, with 1, or needs them no more, with -1.
func (s *Store) want(layers []string, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range layers {
		if s.wanted[name] += more; s.wanted[name] == 0 {
			delete(s.wanted, name)
		}
	}
}

// openLayer gives the tar of a layer.
type openLayer = func(v1.Layer) (io.ReadCloser, error)

// addLayer unpacks a layer unless it is there; equal layers of parallel pulls are unpacked once.
func (s *Store) addLayer(others *others, diffID v1.Hash, layer v1.Layer, open openLayer) (uint64, error) {
	name := layerName(diffID)
	size, err, _ := s.layers.Do(name, func() (any, error) {
		coming, end := s.arrives(diffID)
		defer end() // when it is there
		return s.fillLayer(name, func(dir string) (uint64, error) {
			if size, ok, err := s.fromOthers(others, coming, dir, layer); ok || err != nil {
				return size, err
			}
			coming.claim(true)
			content, err := open(layer)
			if err != nil {
				return 0, err
			}
			return s.unpackVerified(dir, diffID, fetched{content, coming})
		})
	})
	if err != nil {
		return 0, fmt.Errorf("layer %s: %w", diffID, err)
	}
	return size.(uint64), nil
}

// fillLayer makes the layer's directory appear complete or not at all. It counts, for a record and after a new start, once it is settled.
func (s *Store) fillLayer(name string, fill func(dir string) (uint64, error)) (uint64, error) {
	final := filepath.Join(s.LayersDir(), name)
	if size, err := s.sizes.get(name); err == nil {
		if _, err := os.Stat(final); err == nil {
			return size, nil
		}
	}
	temporary, err := os.MkdirTemp(s.LayersDir(), temporaryPrefix)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temporary) // nothing is left there after the rename
	if err := os.Chmod(temporary, 0o755); err != nil {
		return 0, err
	}
	size, err := fill(temporary)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(os.RemoveAll(final), s.sizes.forget(name)); err != nil {
		return 0, err
	}
	if err := os.Rename(temporary, final); err != nil {
		return 0, err
	}
	s.sizes.unpacked(name, size)
	return size, nil
}

// unpackVerified unpacks a tar, closes it, and keeps notes of it.
func (s *Store) unpackVerified(dir string, diffID v1.Hash, content io.ReadCloser) (uint64, error) {
	defer content.Close()
	hash := sha256.New()
	bounded := &atMost{content, s.limits.tarBytes, fmt.Errorf("%w: the tar of a layer has more than %d bytes", errTooLarge, s.limits.tarBytes)}
	notes, err := s.note(io.TeeReader(bounded, hash))
	if err != nil {
		return 0, err
	}
	defer notes.drop()
	size, err := unpack(&room{dir: dir, statfs: s.statfs}, s.limits, notes.tar)
	if err != nil {
		return 0, err
	}
	// The digest covers the padding behind the last entry too.
	if _, err := io.Copy(io.Discard, notes.tar); err != nil {
		return 0, err
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); sum != diffID.Hex {
		return 0, fmt.Errorf("%w: got sha256:%s", ErrDigestMismatch, sum)
	}
	return size, notes.keep(s.tarPath(layerName(diffID)))
}

// Local is an image whose single layer is built on this machine instead of being unpacked from an archive.
type Local struct {
	Tag string
	// LayerKey identifies the layer's content; images with the same key share the layer.
	LayerKey string
	// Fill writes the layer into dir and returns its size; called only when no layer has the key.
	Fill   func(dir string) (sizeBytes uint64, err error)
	Config v1.Config
}

// AddLocal stores a Local image, pinned.
func (s *Store) AddLocal(local Local) (Image, error) {
	tag, err := Normalize(local.Tag)
	if err != nil {
		return Image{}, err
	}
	key := sha256.Sum256([]byte(local.LayerKey))
	name := hex.EncodeToString(key[:])[:layerNameDigits]
	config, err := json.Marshal(local.Config)
	if err != nil {
		return Image{}, err
	}
	id := sha256.Sum256(fmt.Appendf(config, "\n%s\n%s", local.LayerKey, tag))
	repository, _, _ := strings.Cut(tag, ":")
	digest := "sha256:" + hex.EncodeToString(id[:])
	return s.keep(Image{
		ID: digest, Tags: []string{tag}, Digests: []string{repository + "@" + digest}, Layers: []string{name},
		Config: local.Config, LoadedAt: time.Now(), Pinned: true,
	}, func() (uint64, error) {
		size, err, _ := s.layers.Do(name, func() (any, error) { return s.fillLayer(name, local.Fill) })
		if err != nil {
			return 0, fmt.Errorf("image %s: %w", local.Tag, err)
		}
		return size.(uint64), nil
	})
}
