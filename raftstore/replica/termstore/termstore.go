package termstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// The keys under which raft keeps its term and its vote.
const (
	TermKey          = "CurrentTerm"
	VoteTermKey      = "LastVoteTerm"
	VoteCandidateKey = "LastVoteCand"
)

const checksumBytes = 4

// ErrWentBack: raft was about to store a lower term than before, or a vote in one.
// Nothing was written, and what is stored may be used again.
var ErrWentBack = errors.New("raft's term went back")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Config is what a Store needs; all fields are required.
type Config struct {
	Inner raft.StableStore
	// Write runs one write under the watch that all writes of the replica have.
	Write func(what string, f func() error) error
	// Fail stops the replica.
	Fail func(error)
	// Damaged is what errors of changed bytes wrap.
	Damaged error
}

// Store keeps term and vote with a checksum behind each value. A changed vote would let
// a server vote twice.
//
// Neither the term nor the term of the vote ever becomes lower: raft promised other
// servers never to go back, and reads are proved by that promise (Replica.ConfirmLeader).
// Raft does not try as long as its main loop alone sets them (transport.SetHeartbeatHandler);
// if it did, the replica would stop and what is on disk would stay.
type Store struct {
	cfg Config
	// raftRuns is set before raft is the only caller.
	raftRuns bool
	// voted is set when raft writes a vote.
	voted atomic.Bool
	// writing is held from the look at what is stored until the write is done.
	writing sync.Mutex
}

// New returns a store.
func New(cfg Config) *Store { return &Store{cfg: cfg} }

// RaftRuns tells that from now on raft is the only caller.
func (s *Store) RaftRuns() { s.raftRuns = true }

// Voted reports whether raft has given a vote, be it to itself, since it runs.
func (s *Store) Voted() bool { return s.voted.Load() }

var _ raft.StableStore = (*Store)(nil)

// Set implements raft.StableStore. Raft panics when its term cannot be written;
// the replica has stopped by then, so raft's main goroutine ends here instead.
func (s *Store) Set(key, value []byte) error {
	s.writing.Lock()
	err := s.write(key, value)
	if err == nil && s.raftRuns && string(key) == VoteCandidateKey {
		s.voted.Store(true)
	}
	s.writing.Unlock()
	if err != nil && s.raftRuns {
		runtime.Goexit()
	}
	return err
}

func (s *Store) write(key, value []byte) error {
	sealed := binary.LittleEndian.AppendUint32(append([]byte(nil), value...), stableSum(key, value))
	// At its start raft writes the term it has just read.
	if stored, err := s.cfg.Inner.Get(key); err == nil && bytes.Equal(stored, sealed) {
		return nil
	}
	if err := s.prepare(string(key), value); err != nil {
		s.cfg.Fail(err)
		return err
	}
	return s.cfg.Write("vote", func() error { return s.cfg.Inner.Set(key, sealed) })
}

// prepare is called before a new value is written.
func (s *Store) prepare(key string, value []byte) error {
	if key != TermKey && key != VoteTermKey || len(value) != 8 {
		return nil
	}
	if err := s.refuseEarlier(key, binary.LittleEndian.Uint64(value)); err != nil || key == TermKey {
		return err
	}
	// Raft writes the term of a vote and then the candidate. Without this, a power cut
	// between the two would leave the candidate of an earlier vote beside the new term, and
	// raft would take that for a vote given in it, and grant it again without a look at the
	// candidate's log.
	return s.write([]byte(VoteCandidateKey), []byte{})
}

// refuseEarlier fails if a term is lower than one that was stored.
func (s *Store) refuseEarlier(key string, term uint64) error {
	for _, other := range []string{TermKey, VoteTermKey} {
		stored, err := s.GetUint64([]byte(other))
		if err != nil && !NotFound(err) {
			return err
		}
		if term < stored {
			return fmt.Errorf("%w: %s %d after %s %d", ErrWentBack, key, term, other, stored)
		}
	}
	return nil
}

// Get implements raft.StableStore. The error for a missing key is the library's:
// raft knows it by its text.
func (s *Store) Get(key []byte) ([]byte, error) {
	sealed, err := s.cfg.Inner.Get(key)
	if err != nil || len(sealed) == 0 {
		return nil, err
	}
	n := len(sealed) - checksumBytes
	if n < 0 || binary.LittleEndian.Uint32(sealed[n:]) != stableSum(key, sealed[:n]) {
		return nil, fmt.Errorf("%w: stable value %q", s.cfg.Damaged, key)
	}
	return sealed[:n:n], nil
}

// SetUint64 implements raft.StableStore.
func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil || len(value) == 0 {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: stable value %q has %d bytes", s.cfg.Damaged, key, len(value))
	}
	return binary.LittleEndian.Uint64(value), nil
}

func stableSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// NotFound reports whether a key was never set: raft knows that by the text too.
func NotFound(err error) bool { return err != nil && err.Error() == "not found" }
