package state

import (
	"sync"

	"github.com/google/btree"
)

// adoption is what states that begin as a snapshot take of it. Cloning a tree writes to it, so nobody else
// clones these.
type adoption struct {
	mu       sync.Mutex
	tree     *btree.BTreeG[*Record]
	sessions sessionTable
}

// clone is what a state begins with. A snapshot of a root has no tree but the root's.
func (a *adoption) clone(root *Root) (*btree.BTreeG[*Record], sessionTable) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tree == nil {
		a.tree = root.tree.Clone()
	}
	return a.tree.Clone(), a.sessions.clone()
}

// Adopt makes the state that of a snapshot, as Restore of its bytes would. Both share records and the parts of
// the tree that neither changes. Any number of states may adopt a snapshot, at any time; one that Rebirth made of
// a root only when no state publishes that root any more, which would clone its tree as well. Call it from the
// goroutine that applies.
func (s *State) Adopt(snap *Snapshot) {
	root := snap.root
	s.tree, s.sessions = snap.adoption.clone(root)
	s.digest, s.bytes = root.digest, root.bytes
	s.meta = meta{
		index: root.Index, revision: root.Revision, featureLevel: root.FeatureLevel, clusterID: root.ClusterID,
		life: root.Life, formerLife: root.FormerLife,
	}
	s.begin(snap.historyStart, snap.history)
}
