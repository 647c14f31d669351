package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// SharedBytesMax bounds what all files of a Shared have together; real ones have some 2 KiB.
const SharedBytesMax = 256 << 10

// sharedFiles are what all servers have alike, and whether none can be without it.
var sharedFiles = map[string]bool{
	fileCACert: true, fileCAKey: true, fileGossipKey: true, fileAccountKey: true, fileFounded: true,
	fileEncryption: false, fileNodeToken: false, fileGossipRing: false, fileCARing: false,
}

var (
	// ErrNotShared says that a cluster has nothing that another server could get: it ends with its process, or is not founded yet.
	ErrNotShared = errors.New("this cluster has no trust folder, or is not founded yet")
	// ErrBadShared says that what another server sent is no trust folder.
	ErrBadShared = errors.New("what the server sent is no trust folder")
)

// Shared are the files of a trust folder that all servers have alike, by their names: the keys of the authority, of service accounts, of
// gossip and of stored Secrets, and the record of the founding. Whoever has them can do everything.
type Shared map[string][]byte

// Shared reads the files as they are now, or fails with ErrNotShared.
func (c *Cluster) Shared() (Shared, error) {
	if c.inMemory() {
		return nil, ErrNotShared
	}
	shared := Shared{}
	for _, name := range slices.Sorted(maps.Keys(sharedFiles)) { // gossip.key before gossip.ring, which is written first: they fit together
		needed := sharedFiles[name]
		text, err := os.ReadFile(c.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && !needed:
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w: %s is missing", ErrNotShared, name)
		case err != nil:
			return nil, err
		}
		shared[name] = text
	}
	return shared, shared.validate(c.CA.ClusterID())
}

// validate fails with ErrBadShared unless these are the files of the authority with the hash.
func (s Shared) validate(pin string) error {
	bytes := 0
	for name, text := range s {
		if _, known := sharedFiles[name]; !known {
			return fmt.Errorf("%w: it has a file that is none", ErrBadShared)
		}
		bytes += len(text)
	}
	for name, needed := range sharedFiles {
		if needed && len(s[name]) == 0 {
			return fmt.Errorf("%w: %s is missing", ErrBadShared, name)
		}
	}
	if bytes > SharedBytesMax {
		return fmt.Errorf("%w: it has more than %d KiB", ErrBadShared, SharedBytesMax>>10)
	}
	ca, err := s.authority()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadShared, err)
	}
	if !ca.Holds(pin) && ca.ClusterID() != pin {
		return fmt.Errorf("%w: it is of another certificate authority", ErrBadShared)
	}
	return nil
}
