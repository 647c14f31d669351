package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

var (
	// ErrCompacted reports a revision older than the watch history.
	ErrCompacted = watch.ErrCompacted
	// ErrFuture reports a revision that this replica has not reached.
	ErrFuture = errors.New("revision is in the future")
)

// maxPastRoots is how many rebuilt roots are kept for the next page of a list.
const maxPastRoots = 8

// pastRoots keeps the roots rebuilt last, newest last.
type pastRoots struct {
	mu    sync.Mutex
	roots []*Root
}

// RootAt returns the objects as they were at a revision, by undoing what the
// ring holds since. It fails with ErrCompacted when the ring does not reach back
// so far, ErrFuture when the revision is not here yet.
func (s *State) RootAt(revision uint64) (*Root, error) {
	s.past.mu.Lock()
	defer s.past.mu.Unlock()
	root, events, err := s.since(revision)
	if err != nil {
		return nil, err
	}
	if root.Revision == revision {
		return root, nil
	}
	if kept := s.past.find(revision); kept != nil {
		return kept, nil
	}
	past := undo(root, events, revision)
	s.past.keep(past)
	return past, nil
}

// since returns the present root and the events between the revision and it.
func (s *State) since(revision uint64) (*Root, []watch.Event, error) {
	s.publish.RLock()
	defer s.publish.RUnlock()
	root := s.Root()
	if revision > root.Revision {
		return nil, nil, fmt.Errorf("%w: %d, now at %d", ErrFuture, revision, root.Revision)
	}
	events, err := s.ring.Since(revision)
	return root, events, err
}

// undo rebuilds the root at a revision. The caller holds pastRoots.mu, since
// cloning a tree writes to it.
func undo(root *Root, events []watch.Event, revision uint64) *Root {
	tree, bytes := root.tree.Clone(), root.bytes
	for _, e := range slices.Backward(events) {
		if e.Record != nil {
			bytes -= weight(e.Record)
		}
		if e.Prev != nil {
			bytes += weight(e.Prev)
			tree.ReplaceOrInsert(e.Prev)
		} else {
			tree.Delete(e.Record)
		}
	}
	return &Root{
		Revision: revision, Index: root.Index, FeatureLevel: root.FeatureLevel, ClusterID: root.ClusterID,
		digest: undoDigest(root.digest, events, revision), bytes: bytes, tree: tree,
	}
}

// undoDigest takes the changes after the revision back out of the digest.
func undoDigest(digest record.Digest, events []watch.Event, revision uint64) record.Digest {
	for i := range events {
		if events[i].Revision <= revision {
			continue
		}
		if events[i].Record != nil {
			digest = digest.Minus(events[i].Record.Digest())
		}
		if events[i].Prev != nil {
			digest = digest.Plus(events[i].Prev.Digest())
		}
	}
	return digest
}

// Undone returns the objects of this root in a folder, or the one under a key, as a root of an older revision in which those under the
// keys of before were what it says; nil: they were not there. Nothing else is in it.
func (r *Root) Undone(revision uint64, prefix string, before map[string]*Record) *Root {
	past := &Root{Revision: revision, Index: r.Index, FeatureLevel: r.FeatureLevel, ClusterID: r.ClusterID, tree: newTree()}
	for rec := range r.All(prefix) {
		if prefix != "" && !strings.HasSuffix(prefix, "/") && rec.Key != prefix {
			break
		}
		if _, changed := before[rec.Key]; !changed {
			past.tree.ReplaceOrInsert(rec)
			past.bytes += weight(rec)
		}
	}
	for _, rec := range before {
		if rec != nil {
			past.tree.ReplaceOrInsert(rec)
			past.bytes += weight(rec)
		}
	}
	return past
}

func (p *pastRoots) find(revision uint64) *Root {
	for _, root := range p.roots {
		if root.Revision == revision {
			return root
		}
	}
	return nil
}

func (p *pastRoots) keep(root *Root) {
	if len(p.roots) == maxPastRoots {
		p.roots = slices.Delete(p.roots, 0, 1)
	}
	p.roots = append(p.roots, root)
}

// expire drops the roots that the history no longer reaches, which would keep
// objects in memory that nobody may ask for. If a root is being rebuilt just now,
// the next entry will do: Apply does not wait for readers.
func (p *pastRoots) expire(compacted uint64) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	p.roots = slices.DeleteFunc(p.roots, func(r *Root) bool { return r.Revision < compacted })
}

// forget drops all rebuilt roots: after a restore they may belong to a history
// that no longer is.
func (p *pastRoots) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roots = nil
}
