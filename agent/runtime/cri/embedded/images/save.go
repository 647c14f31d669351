package images

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Save writes images as one docker-archive. Layers are kept unpacked, so they are packed anew: files, owners, modes and
// names are those of the image, its digests are not. What is missing is said before the first byte.
func (s *Store) Save(ctx context.Context, w io.Writer, refs ...string) error {
	wanted, err := s.find(refs)
	if err != nil {
		return err
	}
	a := &archiveWriter{ctx: ctx, store: s, out: tar.NewWriter(w), layers: map[string]v1.Hash{}}
	manifest := tarball.Manifest{}
	for _, image := range wanted {
		entry, err := a.image(image)
		if err != nil {
			return fmt.Errorf("save %s: %w", image.ID, err)
		}
		manifest = append(manifest, entry)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return errors.Join(a.file("manifest.json", int64(len(data)), bytes.NewReader(data)), a.out.Close())
}

func (s *Store) find(refs []string) ([]Image, error) {
	var found []Image
	seen := map[string]bool{}
	for _, ref := range refs {
		image, err := s.Get(ref)
		if err != nil {
			return nil, err
		}
		if !seen[image.ID] {
			found = append(found, image)
		}
		seen[image.ID] = true
	}
	return found, nil
}

// archiveWriter writes each layer once, whatever images share it.
type archiveWriter struct {
	ctx    context.Context
	store  *Store
	out    *tar.Writer
	layers map[string]v1.Hash // by their directories
}

func (a *archiveWriter) image(image Image) (tarball.Descriptor, error) {
	descriptor := tarball.Descriptor{RepoTags: image.Tags}
	file := v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", Created: v1.Time{Time: image.LoadedAt.UTC()},
		Config: image.Config, RootFS: v1.RootFS{Type: "layers"},
	}
	for _, layer := range image.Layers {
		diffID, err := a.layer(layer)
		if err != nil {
			return descriptor, err
		}
		descriptor.Layers = append(descriptor.Layers, diffID.Hex+".tar")
		file.RootFS.DiffIDs = append(file.RootFS.DiffIDs, diffID)
	}
	config, err := json.Marshal(file)
	if err != nil {
		return descriptor, err
	}
	sum := sha256.Sum256(config)
	descriptor.Config = hex.EncodeToString(sum[:]) + ".json"
	return descriptor, a.file(descriptor.Config, int64(len(config)), bytes.NewReader(config))
}

// layer packs a layer beside the others first: an archive says how long a file is before it comes.
func (a *archiveWriter) layer(name string) (v1.Hash, error) {
	if diffID, ok := a.layers[name]; ok {
		return diffID, nil
	}
	packed, err := os.CreateTemp(a.store.LayersDir(), temporaryPrefix)
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.Remove(packed.Name())
	defer packed.Close()
	hash := sha256.New()
	if err := pack(a.ctx, filepath.Join(a.store.LayersDir(), name), io.MultiWriter(packed, hash)); err != nil {
		return v1.Hash{}, err
	}
	size, err := packed.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = packed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return v1.Hash{}, err
	}
	diffID := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}
	written := false
	for _, other := range a.layers {
		written = written || other == diffID
	}
	a.layers[name] = diffID
	if written {
		return diffID, nil
	}
	return diffID, a.file(diffID.Hex+".tar", size, packed)
}

func (a *archiveWriter) file(name string, size int64, content io.Reader) error {
	if err := a.out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.Copy(a.out, content)
	return err
}
