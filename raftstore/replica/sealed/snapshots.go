package sealed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
	"github.com/setpoint-io/setpoint/raftstore/replica/logbridge"
)

const (
	// Kept is one to use and one before it, to which the log may reach.
	Kept = 2

	// Dir is where they are, below a data directory.
	Dir = "snapshots"
	// UnfinishedSuffix ends the name of a snapshot that is being written.
	UnfinishedSuffix = ".tmp"

	sealMagic = "setpoint seal 1\n"
	// roomCheckBytes is how much of a snapshot is written between two looks at the
	// free space, and roomLeftBytes, or roomLeftPart of a smaller file system, what
	// it leaves: a snapshot can wait, but an entry of the log that does not fit
	// stops the replica.
	roomCheckBytes = 1 << 20
	roomLeftBytes  = 8 << 20
	roomLeftPart   = 32

	checksumBytes = 4
	// sealBytes is the magic, the length of the state, and a checksum.
	sealBytes = len(sealMagic) + 8 + checksumBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshots adds to the library's snapshots what they lack: their
// description is under a checksum too. The state ends in a seal with the checksum
// of the description; the library's own checksum, in the description, covers state
// and seal. So neither can change, or be another's, unnoticed.
type Snapshots struct {
	inner *raft.FileSnapshotStore
	dir   string
	space func() (diskreserve.Space, error)
	// damaged is set for good by a snapshot that is not what was written. Without
	// it raft would go on to an older one.
	damaged atomic.Pointer[error]
	// report, once set, is told of the damage.
	report atomic.Pointer[func(error)]
	// corrupt is what damage wraps.
	corrupt error
	// newestBytes is the size of the newest snapshot's state.
	newestBytes atomic.Int64
}

var _ raft.SnapshotStore = (*Snapshots)(nil)

// Open opens the snapshots below dir and removes unfinished ones. Errors about damage will wrap corrupt.
func Open(dir string, logger *slog.Logger, corrupt error) (*Snapshots, error) {
	s := &Snapshots{
		corrupt: corrupt, dir: filepath.Join(dir, Dir), space: func() (diskreserve.Space, error) { return diskreserve.FreeSpace(dir) },
	}
	unfinished, err := filepath.Glob(filepath.Join(s.dir, "*"+UnfinishedSuffix))
	if err != nil {
		return nil, err
	}
	for _, path := range unfinished {
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	// The library appends a directory of the same name.
	s.inner, err = raft.NewFileSnapshotStoreWithLogger(dir, Kept, logbridge.New(logger))
	return s, err
}

// Create implements raft.SnapshotStore.
func (s *Snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, transport raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.inner.Create(version, index, term, configuration, configurationIndex, transport)
	if err != nil {
		s.removeUnfinished()
		return nil, err
	}
	return &sealingSink{SnapshotSink: sink, store: s, meta: raft.SnapshotMeta{
		Version: version, Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	}}, nil
}

// removeUnfinished gives back the space of a snapshot that failed. The library
// leaves it there when the disk is full. Raft writes one at a time.
func (s *Snapshots) removeUnfinished() {
	unfinished, _ := filepath.Glob(filepath.Join(s.dir, "*"+UnfinishedSuffix))
	for _, path := range unfinished {
		_ = os.RemoveAll(path)
	}
}

// List implements raft.SnapshotStore. Sizes are those of the state alone.
func (s *Snapshots) List() ([]*raft.SnapshotMeta, error) {
	metas, err := s.inner.List()
	for _, m := range metas {
		m.Size -= int64(sealBytes)
	}
	if len(metas) > 0 {
		s.newestBytes.Store(metas[0].Size)
	}
	return metas, err
}

// Open implements raft.SnapshotStore. After the first damaged snapshot nothing is
// opened.
func (s *Snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if damage := s.damaged.Load(); damage != nil {
		return nil, nil, *damage
	}
	meta, source, err := s.inner.Open(id)
	if err == nil {
		meta.Size -= int64(sealBytes)
		if err = s.checkSeal(id, meta); err == nil {
			return meta, &unsealed{io.LimitReader(source, meta.Size), source}, nil
		}
		source.Close()
	}
	if _, gone := os.Stat(filepath.Join(s.dir, id)); errors.Is(gone, fs.ErrNotExist) {
		// A newer one has taken its place since it was listed.
		return nil, nil, err
	}
	return nil, nil, s.damage(fmt.Errorf("%w: snapshot %q: %w", s.corrupt, id, err))
}

func (s *Snapshots) damage(err error) error {
	s.damaged.CompareAndSwap(nil, &err)
	if report := s.report.Load(); report != nil {
		(*report)(err)
	}
	return err
}

// KeepNewest removes all snapshots but the newest, which give room on a disk that
// is nearly full. The log joins it, as that of any other.
func (s *Snapshots) KeepNewest() error {
	metas, err := s.inner.List()
	if err != nil || len(metas) == 0 {
		return err
	}
	for _, m := range metas[1:] {
		if err := os.RemoveAll(filepath.Join(s.dir, m.ID)); err != nil {
			return err
		}
	}
	return nil
}

// Report has f told of damage that is found from now on.
func (s *Snapshots) Report(f func(error)) { s.report.Store(&f) }

// NewestBytes is the size of the newest snapshot, 0 if none is known.
func (s *Snapshots) NewestBytes() int64 { return s.newestBytes.Load() }

// Failure returns why a snapshot was refused, or nil.
func (s *Snapshots) Failure() error {
	if damage := s.damaged.Load(); damage != nil {
		return *damage
	}
	return nil
}

// checkSeal compares the seal at the end of the state with the description.
func (s *Snapshots) checkSeal(id string, meta *raft.SnapshotMeta) error {
	file, err := os.Open(filepath.Join(s.dir, id, "state.bin"))
	if err != nil {
		return err
	}
	defer file.Close()
	found := make([]byte, sealBytes)
	if _, err := file.ReadAt(found, meta.Size); err != nil {
		return fmt.Errorf("reading its seal: %w", err)
	}
	if !bytes.Equal(found, sealOf(meta)) {
		return fmt.Errorf("the description is not that of this state")
	}
	return nil
}

// sealOf is the seal of a snapshot whose state has meta.Size bytes.
func sealOf(meta *raft.SnapshotMeta) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(sealMagic), uint64(meta.Size))
	described := binary.LittleEndian.AppendUint64(b, uint64(meta.Version))
	for _, number := range []uint64{meta.Index, meta.Term, meta.ConfigurationIndex} {
		described = binary.LittleEndian.AppendUint64(described, number)
	}
	described = append(described, raft.EncodeConfiguration(meta.Configuration)...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(described, castagnoli))
}

// unsealed is the state without its seal.
type unsealed struct {
	io.Reader
	file io.Closer
}

// Close implements io.Closer.
func (u *unsealed) Close() error { return u.file.Close() }

// sealingSink writes the seal behind the state.
type sealingSink struct {
	raft.SnapshotSink
	store *Snapshots
	meta  raft.SnapshotMeta
	// checkAt is the size at which to look at the free space again.
	checkAt int64
}

// Write implements io.Writer.
func (s *sealingSink) Write(b []byte) (int, error) {
	if s.meta.Size >= s.checkAt {
		if err := s.store.checkRoom(); err != nil {
			return 0, err
		}
		s.checkAt = s.meta.Size + roomCheckBytes
	}
	n, err := s.SnapshotSink.Write(b)
	s.meta.Size += int64(n)
	return n, err
}

// checkRoom returns an error when a snapshot must not take more space.
func (s *Snapshots) checkRoom() error {
	space, err := s.space()
	if err != nil {
		return err
	}
	return RoomFor(space)
}

// RoomFor returns an error when a snapshot must not take more of that space.
func RoomFor(space diskreserve.Space) error {
	if left := min(roomLeftBytes, space.TotalBytes/roomLeftPart); space.FreeBytes < left+roomCheckBytes {
		return fmt.Errorf("only %d MiB of the disk are free", space.FreeBytes>>20)
	}
	return nil
}

// Close implements io.Closer: from here on the snapshot is complete.
func (s *sealingSink) Close() error {
	if _, err := s.SnapshotSink.Write(sealOf(&s.meta)); err != nil {
		return err
	}
	if err := s.SnapshotSink.Close(); err != nil {
		s.store.removeUnfinished()
		return err
	}
	s.store.newestBytes.Store(s.meta.Size)
	return nil
}

// Cancel implements raft.SnapshotSink.
func (s *sealingSink) Cancel() error {
	err := s.SnapshotSink.Cancel()
	s.store.removeUnfinished()
	return err
}
