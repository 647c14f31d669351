package state

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// Record is one object of the store; see package record.
type Record = record.Record

// treeDegree is the B-tree's degree: the fastest measured for publishing a
// snapshot with every batch.
const treeDegree = 32

// Options configures a State. The zero value is usable.
type Options struct {
	// RingBytes limits the watch history; 0 means watch.DefaultLimitBytes.
	RingBytes int64
	// OnComparison, if not nil, is called by Apply for each StateHash operation that can
	// be judged here. It must not wait.
	OnComparison func(Comparison)
}

// Comparison is what a StateHash operation claimed, and what was found here.
type Comparison struct {
	// Index is the log entry that carried the claim, Revision what it is about.
	Index, Revision uint64
	// Want is the hash claimed, Got the one found here. Got is zero if this
	// replica has not even reached Revision.
	Want, Got [command.HashBytes]byte
}

// Agrees reports whether this replica has what was claimed.
func (c Comparison) Agrees() bool { return c.Want == c.Got }

// State is the state machine of one replica.
type State struct {
	options Options
	ring    *watch.Ring

	// The rest up to publish is written by Apply and Restore only.
	tree     *btree.BTreeG[*Record]
	meta     meta
	digest   record.Digest
	bytes    int64
	sessions sessionTable
	entry    entry

	// publish keeps the root and the ring in step for whoever needs both: held
	// for writing from the swap of the root until the events are in the ring.
	publish sync.RWMutex
	root    atomic.Pointer[Root]
	waiters signal

	past pastRoots
}

// meta is the state beside objects and sessions.
type meta struct {
	index, revision uint64
	featureLevel    uint64
	clusterID       string
	// life and formerLife: see Root.
	life, formerLife string
}

// entry is what Apply gathers while it works on one log entry.
type entry struct {
	term   uint64
	nanos  int64
	events []watch.Event
	// restart is set when the history was cut off at restartRevision; events
	// holds what came after.
	restart         bool
	restartRevision uint64
	changed         bool
}

// New returns an empty state at revision 0.
func New(options Options) *State {
	s := &State{options: options, ring: watch.NewRing(options.RingBytes), tree: newTree()}
	s.root.Store(&Root{tree: s.tree.Clone()})
	return s
}

func newTree() *btree.BTreeG[*Record] {
	return btree.NewG(treeDegree, func(a, b *Record) bool { return a.Key < b.Key })
}

// Apply applies one log entry, committed at index in the given raft term, and
// returns a result for each command. Indexes must ascend.
func (s *State) Apply(index, term uint64, e *command.Entry) []command.Result {
	if index <= s.meta.index {
		panic(fmt.Sprintf("state: entry %d applied after entry %d", index, s.meta.index))
	}
	s.meta.index = index
	s.entry = entry{term: term, nanos: e.UnixNanos}
	results := make([]command.Result, len(e.Commands))
	for i := range e.Commands {
		results[i] = s.once(&e.Commands[i])
	}
	s.publishEntry()
	return results
}

// publishEntry makes the entry visible: root, then events, then whoever waits.
func (s *State) publishEntry() {
	root := s.newRoot()
	if !s.entry.changed {
		root.tree = s.Root().tree
	} else {
		root.tree = s.tree.Clone()
	}
	s.publish.Lock()
	s.root.Store(root)
	if s.entry.restart {
		s.ring.Reset(s.entry.restartRevision, s.entry.events, s.meta.revision)
	} else if len(s.entry.events) > 0 {
		s.ring.Append(s.entry.events)
	}
	s.publish.Unlock()
	s.entry = entry{}
	compacted, _ := s.ring.Bounds()
	s.past.expire(compacted)
	s.waiters.broadcast()
}

// newRoot returns a root of the present state, still without its tree.
func (s *State) newRoot() *Root {
	return &Root{
		Revision:     s.meta.revision,
		Index:        s.meta.index,
		FeatureLevel: s.meta.featureLevel,
		ClusterID:    s.meta.clusterID,
		Life:         s.meta.life,
		FormerLife:   s.meta.formerLife,
		digest:       s.digest,
		bytes:        s.bytes,
	}
}

// Root returns the state after the last entry applied. It takes no lock.
func (s *State) Root() *Root { return s.root.Load() }

// Ring returns the watch history.
func (s *State) Ring() *watch.Ring { return s.ring }

// Hash returns the hash of all objects, and the revision it belongs to. It does
// not depend on the order in which the objects were put.
func (s *State) Hash() (revision uint64, hash [command.HashBytes]byte) {
	root := s.Root()
	return root.Revision, root.digest.Bytes()
}
