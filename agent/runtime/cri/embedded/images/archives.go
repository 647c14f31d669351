package images

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// indexDepthMax bounds indexes within indexes; real archives have two. An index of a
// layout may contain itself: nobody has checked its digest.
const indexDepthMax = 8

// archiveBytesMax bounds a compressed or OCI archive, which is unpacked to a temporary place first.
const archiveBytesMax = 64 << 30

// Annotations by which tools name the images of an OCI layout.
const (
	annotationName    = "io.containerd.image.name"
	annotationRefName = "org.opencontainers.image.ref.name"
)

// errNotAnArchive says that a file is neither form of image archive.
var errNotAnArchive = errors.New("neither a docker-archive nor an OCI layout")

// LoadArchives loads every archive of the folder that is new or changed. One broken archive does not hide the others.
func (s *Store) LoadArchives() error {
	if s.config.ArchivesDir == "" {
		return nil
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	entries, err := os.ReadDir(s.config.ArchivesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		err = errors.Join(err, s.loadChanged(entry))
	}
	return err
}

func (s *Store) loadChanged(entry fs.DirEntry) error {
	base := entry.Name()
	if entry.IsDir() || !(strings.HasSuffix(base, ".tar") || strings.HasSuffix(base, ".tar.gz") || strings.HasSuffix(base, ".tgz")) {
		return nil
	}
	path := filepath.Join(s.config.ArchivesDir, base)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	version := fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	if s.seen[base] == version {
		return nil
	}
	loaded, err := s.LoadArchive(path)
	if err != nil {
		return fmt.Errorf("image archive %s: %w", base, err)
	}
	s.seen[base] = version
	s.config.Logger.Info("image archive loaded", "archive", base, "images", len(loaded))
	return nil
}

// LoadArchive loads all images of one tar, docker-archive or OCI layout, plain or gzip.
func (s *Store) LoadArchive(path string) ([]Image, error) {
	if strings.HasSuffix(path, "gz") {
		plain, err := s.decompress(path)
		if err != nil {
			return nil, err
		}
		defer os.Remove(plain)
		path = plain
	}
	kind, err := archiveKind(path)
	if err != nil {
		return nil, err
	}
	if kind == "oci" {
		return s.loadLayout(path)
	}
	return s.loadDocker(path)
}

func (s *Store) decompress(path string) (string, error) {
	source, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer source.Close()
	reader, err := gzip.NewReader(source)
	if err != nil {
		return "", err
	}
	plain, err := os.CreateTemp(s.LayersDir(), temporaryPrefix)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(plain, io.LimitReader(reader, archiveBytesMax))
	if err := errors.Join(err, plain.Close()); err != nil {
		return "", errors.Join(err, os.Remove(plain.Name()))
	}
	return plain.Name(), nil
}

// archiveKind looks for the file that marks each form. Docker's own newer archives carry both: then the docker form
// is taken, because it names the tags.
func archiveKind(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	kind := ""
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("%w: %w", errNotAnArchive, err)
		}
		switch strings.TrimPrefix(header.Name, "./") {
		case "manifest.json":
			return "docker", nil
		case "oci-layout":
			kind = "oci"
		}
	}
	if kind == "" {
		return "", errNotAnArchive
	}
	return kind, nil
}

func (s *Store) loadDocker(path string) ([]Image, error) {
	opener := func() (io.ReadCloser, error) { return os.Open(path) }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil {
		return nil, err
	}
	var loaded []Image
	for _, descriptor := range manifest {
		var first *name.Tag
		var tags []string
		for _, text := range descriptor.RepoTags {
			tag, err := name.NewTag(text)
			if err != nil {
				return loaded, fmt.Errorf("%w: %w", ErrInvalidName, err)
			}
			if first == nil {
				first = &tag
			}
			normal, err := Normalize(text)
			if err != nil {
				return loaded, err
			}
			tags = append(tags, normal)
		}
		image, err := tarball.Image(opener, first)
		if err != nil {
			return loaded, err
		}
		stored, err := s.add(image, Image{Tags: tags, Archived: tags})
		if err != nil {
			return loaded, err
		}
		loaded = append(loaded, stored)
	}
	return loaded, nil
}

func (s *Store) loadLayout(archive string) ([]Image, error) {
	dir, err := os.MkdirTemp(s.LayersDir(), temporaryPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := extract(archive, dir); err != nil {
		return nil, err
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	return s.loadIndex(index, "", indexDepthMax)
}

// extract writes the plain files of an archive below dir.
func extract(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := extractFile(root, header.Name, reader); err != nil {
			return err
		}
	}
}

func extractFile(root *os.Root, name string, content io.Reader) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(content, archiveBytesMax))
	return errors.Join(err, file.Close())
}

// loadIndex loads the images of an index that fit this machine; inherited is the name of an enclosing index,
// depth how many may still be inside of each other.
func (s *Store) loadIndex(index v1.ImageIndex, inherited string, depth int) ([]Image, error) {
	if depth == 0 {
		return nil, fmt.Errorf("%w: indexes within indexes, more than %d", errNotAnArchive, indexDepthMax)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var loaded []Image
	for _, descriptor := range manifest.Manifests {
		more, err := s.loadDescriptor(index, descriptor, inherited, depth)
		if err != nil {
			return loaded, err
		}
		loaded = append(loaded, more...)
	}
	return loaded, nil
}

func (s *Store) loadDescriptor(index v1.ImageIndex, descriptor v1.Descriptor, inherited string, depth int) ([]Image, error) {
	tag := descriptor.Annotations[annotationName]
	if tag == "" {
		tag = descriptor.Annotations[annotationRefName]
	}
	if tag == "" {
		tag = inherited
	}
	if descriptor.MediaType.IsIndex() {
		inner, err := index.ImageIndex(descriptor.Digest)
		if err != nil {
			return nil, err
		}
		return s.loadIndex(inner, tag, depth-1)
	}
	if !descriptor.MediaType.IsImage() || !fitsPlatform(descriptor.Platform) {
		return nil, nil
	}
	image, err := index.Image(descriptor.Digest)
	if err != nil {
		return nil, err
	}
	stored, err := s.addNamed(image, tag, descriptor.Digest)
	if err != nil {
		return nil, err
	}
	return []Image{stored}, nil
}

func (s *Store) addNamed(image v1.Image, tag string, digest v1.Hash) (Image, error) {
	if tag == "" {
		return s.add(image, Image{})
	}
	normal, err := Normalize(tag)
	if err != nil {
		return Image{}, err
	}
	repository, _ := splitName(normal)
	byDigest := repository + "@" + digest.String()
	return s.add(image, Image{Tags: []string{normal}, Digests: []string{byDigest}, Archived: []string{normal, byDigest}})
}
