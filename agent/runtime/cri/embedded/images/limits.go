package images

import (
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// What an image may be. Whoever made it may lie, and the registry too: each of these is an error of its pull, in place of a full disk or
// of an agent without memory.
const (
	// layersMax is Docker's. The names of more would not fit into the page that options of a mount may have.
	layersMax = 127
	// manifestBytesMax is what registries have to accept, by the distribution specification.
	manifestBytesMax = 4 << 20
	configBytesMax   = 8 << 20
	// nameBytesMax is the kernel's limit for paths, without their end.
	nameBytesMax = unix.PathMax - 1
)

// limits are those of one layer.
type limits struct {
	// bytes is what the content of its files may have, tarBytes its tar: each file takes a header and some padding too.
	bytes, tarBytes uint64
	// entries of its tar.
	entries int
	// folderBytes is the length of its folders' names, which are remembered.
	folderBytes int
}

var defaultLimits = limits{bytes: 32 << 30, tarBytes: 64 << 30, entries: 4_000_000, folderBytes: 64 << 20}

var (
	errTooLarge         = errors.New("the image is larger than is allowed")
	errNoRoom           = errors.New("no room for the image: the disk is nearly full")
	errTooManyLayers    = fmt.Errorf("%w: more than %d layers", errTooLarge, layersMax)
	errManifestTooLarge = fmt.Errorf("%w: a manifest of more than %d MiB", errTooLarge, manifestBytesMax>>20)
)

// checkManifest is called before the config is read, which is read whole.
func checkManifest(image v1.Image) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	if size := manifest.Config.Size; size < 0 || size > configBytesMax {
		return fmt.Errorf("%w: a config of %d bytes, want at most %d MiB", errTooLarge, size, configBytesMax>>20)
	}
	return nil
}

// atMost is a reader that fails once it has given more than left bytes.
type atMost struct {
	io.Reader
	left uint64
	err  error
}

// Read implements io.Reader.
func (r *atMost) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if uint64(n) > r.left {
		return 0, r.err
	}
	r.left -= uint64(n)
	return n, err
}

// Of the disk an image leaves the smaller of these: other pods write there, and the eviction of pods takes a while to make room.
const (
	reserveShare    = 50 // one in so many bytes, and files
	reserveBytesMax = 1 << 30
)

// roomCheckBytes is how much may be written between two looks at the disk, roomEntryBytes what a file counts beside its content.
const (
	roomCheckBytes = 16 << 20
	roomEntryBytes = 4 << 10
)

// room is that of the disk on which a layer is unpacked.
type room struct {
	dir    string
	statfs func(dir string, into *unix.Statfs_t) error
	left   int64 // until the next look
}

// take is called before so much is written.
func (r *room) take(bytes int64) error {
	r.left -= bytes
	if r.left >= 0 {
		return nil
	}
	r.left = roomCheckBytes
	var disk unix.Statfs_t
	if err := r.statfs(r.dir, &disk); err != nil {
		return fmt.Errorf("free bytes of %s: %w", r.dir, err)
	}
	block := uint64(disk.Bsize)
	if disk.Bavail*block < min(disk.Blocks*block/reserveShare, reserveBytesMax) {
		return errNoRoom
	}
	if disk.Files > 0 && disk.Ffree < disk.Files/reserveShare { // some file systems have no such number
		return fmt.Errorf("%w: of its files", errNoRoom)
	}
	return nil
}
