package images

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/registries"
)

// LocalDomain is the registry host of images that exist only on this machine; it is never dialled.
const LocalDomain = "setpoint.local"

var (
	// ErrNotFound says that no stored image has this name or id.
	ErrNotFound = errors.New("image not found")
	// ErrInvalidName says that a reference cannot be parsed.
	ErrInvalidName = errors.New("invalid image name")
	// ErrDigestMismatch says that content is not what its digest promises.
	ErrDigestMismatch = errors.New("content does not match its digest")
)

// Config of a Store.
type Config struct {
	// Dir holds layers and records; it must be on a file system that can hold overlays.
	Dir string
	// ArchivesDir is the folder with docker-archive and OCI-layout tars; empty means none.
	ArchivesDir string
	// Registries says from where images are fetched; the zero Config: from the registries that their names have.
	Registries registries.Config
	Logger     *slog.Logger
}

// Image is one stored image. Values are shared: do not modify.
type Image struct {
	// ID is the digest of the image's config, "sha256:...".
	ID string
	// Tags are normalised ("docker.io/library/nginx:latest"), Digests are "name@sha256:...".
	Tags    []string
	Digests []string
	// Archived are those of the names that an archive gave.
	Archived []string
	// Layers are directory names below Store.LayersDir, lowest first.
	Layers []string
	Config v1.Config
	// SizeBytes is the unpacked size.
	SizeBytes uint64
	LoadedAt  time.Time
	// Pinned images are not garbage.
	Pinned bool
}

// Store is the set of images on this node. mu guards images, wanted, pulling, peers and coming; nobody waits for the disk with it
// but to remove. Who writes or removes records has recording, which is taken first.
type Store struct {
	config Config
	mu     sync.Mutex
	images map[string]Image
	seen   map[string]string // archive name -> size and time at which it was loaded
	sizes  *sizes
	// wanted counts, by layer, the pulls under way that need it: it is not removed.
	wanted    map[string]int
	recording sync.Mutex
	layers    singleflight.Group
	pulls     singleflight.Group
	pulling   map[*pulling]bool
	loading   sync.Mutex
	peers     askOthers
	coming    map[string]*arrival // by the layer's directory
	limits    limits
	// statfs is asked what the disk has left.
	statfs func(dir string, into *unix.Statfs_t) error
}

// Open reads the records and removes what a crash left half done.
func Open(config Config) (*Store, error) {
	s := &Store{
		config: config, images: map[string]Image{}, seen: map[string]string{}, pulling: map[*pulling]bool{}, coming: map[string]*arrival{},
		wanted: map[string]int{},
		limits: defaultLimits, statfs: unix.Statfs,
	}
	for _, dir := range []string{config.Dir, s.LayersDir(), s.recordsDir(), s.sizesDir(), s.tarsDir()} {
		if err := private.Folder(dir); err != nil {
			return nil, fmt.Errorf("image store: %w", err)
		}
	}
	s.sizes = newSizes(s.sizesDir(), s.LayersDir())
	if err := s.removeTemporary(); err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	entries, err := os.ReadDir(s.recordsDir())
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	for _, entry := range entries {
		s.readRecord(entry.Name())
	}
	return s, nil
}

// LayersDir is the directory of all unpacked layers.
func (s *Store) LayersDir() string { return filepath.Join(s.config.Dir, "layers") }

func (s *Store) recordsDir() string { return filepath.Join(s.config.Dir, "records") }

func (s *Store) sizesDir() string { return filepath.Join(s.config.Dir, "sizes") }

const temporaryPrefix = ".tmp-"

func (s *Store) removeTemporary() error {
	var errs error
	for _, dir := range []string{s.LayersDir(), s.tarsDir()} {
		leftovers, err := filepath.Glob(filepath.Join(dir, temporaryPrefix+"*"))
		errs = errors.Join(errs, err)
		for _, leftover := range leftovers {
			errs = errors.Join(errs, os.RemoveAll(leftover))
		}
	}
	return errs
}

// readRecord takes a record whose layers are all there and whole; any other is forgotten, so that the image is fetched again.
func (s *Store) readRecord(name string) {
	path := filepath.Join(s.recordsDir(), name)
	data, err := os.ReadFile(path)
	var image Image
	if err == nil {
		err = json.Unmarshal(data, &image)
	}
	for _, layer := range image.Layers {
		if err == nil {
			_, err = os.Stat(filepath.Join(s.LayersDir(), layer))
		}
		if err == nil {
			_, err = s.sizes.settled(layer)
		}
	}
	if err != nil || image.ID == "" {
		s.config.Logger.Warn("image record dropped", "record", name, "err", err)
		_ = os.Remove(path) // at worst it is dropped again next time
		return
	}
	s.images[image.ID] = image
}

// Normalize gives a reference its full form, as Docker does: "nginx" is docker.io/library/nginx:latest.
func Normalize(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrInvalidName, ref, err)
	}
	return named.String(), nil
}

// Get finds an image by tag, digest reference or id (with or without "sha256:"; a unique prefix of 12 or more digits).
func (s *Store) Get(ref string) (Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(ref)
}

const idPrefixMin = 12

func (s *Store) get(ref string) (Image, error) {
	if image, ok := s.images[ref]; ok {
		return image, nil
	}
	if image, ok := s.images["sha256:"+ref]; ok {
		return image, nil
	}
	if name, err := Normalize(ref); err == nil {
		for _, image := range s.images {
			if slices.Contains(image.Tags, name) || slices.Contains(image.Digests, name) {
				return image, nil
			}
		}
	}
	return s.byPrefix(ref)
}

func (s *Store) byPrefix(ref string) (Image, error) {
	var found []Image
	prefix := strings.TrimPrefix(ref, "sha256:")
	for id, image := range s.images {
		if len(prefix) >= idPrefixMin && strings.HasPrefix(id, "sha256:"+prefix) {
			found = append(found, image)
		}
	}
	if len(found) != 1 {
		return Image{}, fmt.Errorf("%w: %s", ErrNotFound, ref)
	}
	return found[0], nil
}

// List returns all images, ordered by id.
func (s *Store) List() []Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Image
	for _, image := range s.images {
		list = append(list, image)
	}
	slices.SortFunc(list, func(a, b Image) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Kept reports whether the image is no garbage even if nobody uses it: it is pinned, or an archive in the folder brought a
// name that it has, and no registry might have it.
func (i Image) Kept() bool {
	return i.Pinned || slices.ContainsFunc(i.Archived, func(name string) bool {
		return slices.Contains(i.Tags, name) || slices.Contains(i.Digests, name)
	})
}

// put stores an image under its names; a name moves away from the image that had it before.
func (s *Store) put(image Image) (Image, error) {
	s.recording.Lock()
	defer s.recording.Unlock()
	changed := s.changedBy(image)
	for _, record := range changed {
		if err := s.write(record); err != nil {
			return Image{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range changed {
		s.images[record.ID] = record
	}
	return changed[len(changed)-1], nil
}

// changedBy are the images that lose a name to this one, as they are without it, and then this one with the names that it had.
func (s *Store) changedBy(image Image) (changed []Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.images[image.ID]; ok {
		image.Tags = union(before.Tags, image.Tags)
		image.Digests = union(before.Digests, image.Digests)
		image.Archived = union(before.Archived, image.Archived)
	}
	for id, other := range s.images {
		kept := slices.DeleteFunc(slices.Clone(other.Tags), func(tag string) bool { return slices.Contains(image.Tags, tag) })
		if id == image.ID || len(kept) == len(other.Tags) {
			continue
		}
		other.Tags = kept
		other.Pinned = other.Pinned && len(kept) > 0
		changed = append(changed, other)
	}
	return append(changed, image)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// write replaces a record; the caller holds recording.
func (s *Store) write(image Image) error {
	data, err := json.Marshal(image)
	if err != nil {
		return err
	}
	path := s.recordPath(image.ID)
	if err := private.WriteFile(path, data); err != nil {
		return fmt.Errorf("image record: %w", err)
	}
	return nil
}

func (s *Store) recordPath(id string) string {
	return filepath.Join(s.recordsDir(), strings.TrimPrefix(id, "sha256:")+".json")
}

// Remove forgets the image and deletes its layers, except those that another image has or that inUse names. Removing
// an unknown image is no error.
func (s *Store) Remove(ref string, inUse map[string]bool) error {
	s.recording.Lock()
	defer s.recording.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	image, err := s.get(ref)
	if err != nil {
		return nil // CRI: removing what is gone succeeds
	}
	if err := os.Remove(s.recordPath(image.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	delete(s.images, image.ID)
	return s.removeLayers(image.Layers, inUse)
}

// Prune deletes layers that neither an image nor inUse needs: what a removed image left to its last container.
func (s *Store) Prune(inUse map[string]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.LayersDir())
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), temporaryPrefix) {
			names = append(names, entry.Name())
		}
	}
	return s.removeLayers(names, inUse)
}

func (s *Store) removeLayers(names []string, inUse map[string]bool) error {
	needed := map[string]bool{}
	for _, image := range s.images {
		for _, layer := range image.Layers {
			needed[layer] = true
		}
	}
	var errs error
	for _, name := range names {
		if !needed[name] && !inUse[name] && s.wanted[name] == 0 {
			errs = errors.Join(errs, os.RemoveAll(filepath.Join(s.LayersDir(), name)), s.sizes.forget(name), os.RemoveAll(s.tarPath(name)))
		}
	}
	return errs
}
