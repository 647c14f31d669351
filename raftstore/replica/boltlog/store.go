package boltlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// fileMode keeps the cluster's secrets to this user.
const fileMode os.FileMode = 0o600

// The tables of the file.
var logBucket, stableBucket = []byte("logs"), []byte("conf")

// errKeyNotFound has the text by which raft knows it.
var errKeyNotFound = errors.New("not found")

// Store is an open database.
type Store struct {
	conn *bbolt.DB
	// pageBytes is read once: Info is not for use beside a commit, which maps the file
	// anew.
	pageBytes int64
}

var (
	_ raft.LogStore    = (*Store)(nil)
	_ raft.StableStore = (*Store)(nil)
)

// Open opens the file at path, or makes it, and waits that long for another process
// to let go of it. The errors are the database's own.
func Open(path string, lockWait time.Duration) (*Store, error) {
	conn, err := bbolt.Open(path, fileMode, &bbolt.Options{
		Timeout: lockWait,
		// The array form of the free list is slow once a log was cut often. The list
		// is kept in the file: rebuilding it at open reads a damaged file on
		// goroutines of the database, where nothing catches a panic.
		FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	err = conn.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(logBucket)
		if err == nil {
			_, err = tx.CreateBucketIfNotExists(stableBucket)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Store{conn: conn, pageBytes: int64(conn.Info().PageSize)}, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.conn.Close() }

// FreeBytes is the room inside the file.
func (s *Store) FreeBytes() int64 {
	return int64(s.conn.Stats().FreePageN) * s.pageBytes
}

// Set implements raft.StableStore.
func (s *Store) Set(key, value []byte) error {
	return s.conn.Update(func(tx *bbolt.Tx) error { return tx.Bucket(stableBucket).Put(key, value) })
}

// Get implements raft.StableStore.
func (s *Store) Get(key []byte) (value []byte, err error) {
	err = s.conn.View(func(tx *bbolt.Tx) error {
		stored := tx.Bucket(stableBucket).Get(key)
		if stored == nil {
			return errKeyNotFound
		}
		value = append([]byte{}, stored...)
		return nil
	})
	return value, err
}

// SetUint64 implements raft.StableStore.
func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("stable value %q has %d bytes", key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}
