package state

import (
	"iter"
	"strings"

	"github.com/google/btree"

	"github.com/setpoint-io/setpoint/raftstore/record"
)

// Root is all objects at one revision. It never changes.
type Root struct {
	// Revision is the store's counter; Index the last log entry applied.
	Revision, Index uint64
	// FeatureLevel is what all replicas have agreed to understand.
	FeatureLevel uint64
	// ClusterID is "" until the cluster has been given its identity.
	ClusterID string
	// Life names what began with the cluster's founding, or with its last restore or recovery: servers of
	// different lives refuse each other. "" before feature level 2. FormerLife is, after a recovery, the life that
	// it ended.
	Life, FormerLife string

	digest record.Digest
	bytes  int64
	// tree is read only. Clone writes to it, so only pastRoots, under its lock,
	// may clone the tree of a published root.
	tree *btree.BTreeG[*Record]
}

// Bytes is what all records weigh: keys, uids, values, and recordOverheadBytes each.
func (r *Root) Bytes() int64 { return r.bytes }

// recordOverheadBytes is about what a record takes in memory beside its contents.
const recordOverheadBytes = 256

func weight(r *Record) int64 { return int64(r.Bytes()) + recordOverheadBytes }

// Get returns the record under key.
func (r *Root) Get(key string) (*Record, bool) { return r.tree.Get(&Record{Key: key}) }

// Len returns the number of records.
func (r *Root) Len() int { return r.tree.Len() }

// All yields the records whose key has the prefix, in key order.
func (r *Root) All(prefix string) iter.Seq[*Record] { return r.From(prefix, prefix) }

// From yields the records whose key has the prefix and is not before startKey,
// in key order.
func (r *Root) From(prefix, startKey string) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		start := &Record{Key: max(prefix, startKey)}
		r.tree.AscendGreaterOrEqual(start, func(rec *Record) bool {
			return strings.HasPrefix(rec.Key, prefix) && yield(rec)
		})
	}
}

// Count returns how many records have the prefix, in time linear in their
// number; O(1) for the prefix "".
func (r *Root) Count(prefix string) int {
	if prefix == "" {
		return r.Len()
	}
	return r.CountFrom(prefix, prefix)
}

// CountFrom returns how many records From yields, in time linear in their number.
func (r *Root) CountFrom(prefix, startKey string) int {
	n := 0
	for range r.From(prefix, startKey) {
		n++
	}
	return n
}
