package boltlog

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

const (
	// chunkBytes is the longest value of the log's table: two of them, with their
	// keys and the heads of page and elements, fill two pages of 4 KiB. The database
	// keeps two values or more on a page, and writes the last page anew with each
	// commit: with entries in one piece that was up to four of them.
	chunkBytes = 4062
	// indexBytes begin each key of the log: the entry's index, big endian, alone for
	// its first chunk. numberBytes follow it for each further one: 1, 2, and so on.
	indexBytes, numberBytes = 8, 2
)

// FirstIndex implements raft.LogStore.
func (s *Store) FirstIndex() (uint64, error) { return s.bound((*bbolt.Cursor).First) }

// LastIndex implements raft.LogStore.
func (s *Store) LastIndex() (uint64, error) { return s.bound((*bbolt.Cursor).Last) }

func (s *Store) bound(end func(*bbolt.Cursor) (key, value []byte)) (index uint64, err error) {
	err = s.conn.View(func(tx *bbolt.Tx) error {
		key, _ := end(tx.Bucket(logBucket).Cursor())
		index = indexOf(key)
		return nil
	})
	return index, err
}

// GetLog implements raft.LogStore. The entry shares nothing with the database.
func (s *Store) GetLog(index uint64, out *raft.Log) error {
	return s.conn.View(func(tx *bbolt.Tx) error {
		var chunks [][]byte
		cursor := tx.Bucket(logBucket).Cursor()
		for key, value := cursor.Seek(keyOf(index, 0)); key != nil && indexOf(key) == index; key, value = cursor.Next() {
			chunks = append(chunks, value)
		}
		if len(chunks) == 0 {
			return raft.ErrLogNotFound
		}
		return decode(index, chunks, out)
	})
}

// StoreLog implements raft.LogStore.
func (s *Store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. The entries follow each other, and replace those
// of the same indexes.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	return s.conn.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(logBucket)
		// They come in order: what is full is not written to again.
		bucket.FillPercent = 1
		if newest, _ := bucket.Cursor().Last(); logs[0].Index <= indexOf(newest) {
			if err := deleteRange(bucket, logs[0].Index, logs[len(logs)-1].Index); err != nil {
				return err
			}
		}
		for _, l := range logs {
			if err := put(bucket, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// put cuts an entry into chunks. The database copies them when it commits.
func put(bucket *bbolt.Bucket, l *raft.Log) error {
	head := appendHead(make([]byte, 0, min(chunkBytes, headBytes+len(l.Extensions)+len(l.Data))), l)
	n := min(max(chunkBytes-len(head), 0), len(l.Data))
	if err := bucket.Put(keyOf(l.Index, 0), append(head, l.Data[:n]...)); err != nil {
		return err
	}
	rest := l.Data[n:]
	for number := 1; len(rest) > 0; number++ {
		if number > math.MaxUint16 {
			return fmt.Errorf("log entry of %d bytes is too large", len(l.Data))
		}
		n := min(chunkBytes, len(rest))
		if err := bucket.Put(keyOf(l.Index, uint16(number)), rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (s *Store) DeleteRange(low, high uint64) error {
	return s.conn.Update(func(tx *bbolt.Tx) error { return deleteRange(tx.Bucket(logBucket), low, high) })
}

// deleteRange comes first in its transaction: a cursor passes over keys where others
// were changed before.
func deleteRange(bucket *bbolt.Bucket, low, high uint64) error {
	cursor := bucket.Cursor()
	from := keyOf(low, 0)
	for key, _ := cursor.Seek(from); key != nil && indexOf(key) <= high; key, _ = cursor.Next() {
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// keyOf is the key of a chunk; the first has the number 0.
func keyOf(index uint64, number uint16) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, indexBytes+numberBytes), index)
	if number == 0 {
		return key
	}
	return binary.BigEndian.AppendUint16(key, number)
}

// indexOf returns the index in a key, 0 for none.
func indexOf(key []byte) uint64 {
	if len(key) < indexBytes {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}
