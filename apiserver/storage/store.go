package storage

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// futureRevisionWait bounds how long a read waits for a revision that this
// replica has not seen; after it the client gets 504 and may retry.
const futureRevisionWait = 3 * time.Second

// Log is what storage needs of the replicated store.
type Log interface {
	// Propose answers when the leader has applied the command.
	Propose(ctx context.Context, c command.Command) (command.Result, error)
	// Root is the newest state applied here; ReadIndex returns one that holds every write acknowledged before the call, by any replica.
	Root() *state.Root
	ReadIndex(ctx context.Context) (*state.Root, error)
	// WaitRevision waits until this replica has applied the revision.
	WaitRevision(ctx context.Context, revision uint64) (*state.Root, error)
	// RootAt rebuilds the state at a past revision, or fails once it left the ring.
	RootAt(revision uint64) (*state.Root, error)
	// EventAt returns the change that made a revision, unless it left the ring.
	EventAt(revision uint64) (watch.Event, bool)
	Watch(prefix string, after uint64) (*watch.Watcher, error)
	// Led ends while this replica has no leader, and so may miss changes for as long.
	Led() context.Context
}

// Store holds the tables of all kinds.
type Store struct {
	log    Log
	clock  clock.PassiveClock
	codec  codec
	tables map[schema.GroupVersionResource]*Table

	// history is nil where only the watch history reaches back.
	history History

	nudgeable nudgeable
	// caughtUp is set once this replica has held every write acknowledged before it started; see recent.
	caughtUp atomic.Bool
	// sealed is what SealedWith has counted.
	sealed sealedCount
}

// Table is the objects of one kind, in one version.
type Table struct {
	store  *Store
	kind   *resource.Any
	stored *resource.Any // the kind in whose form objects are kept
	prefix string
	// dynamic is nil for the kinds that New was given.
	dynamic *Dynamic
	// metadataOnly tables are made by Metadata.
	metadataOnly bool
}

// New returns a store of the kinds. The scheme knows all their types.
func New(log Log, scheme *runtime.Scheme, kinds []*resource.Any) *Store {
	return NewWithClock(log, scheme, kinds, clock.RealClock{})
}

// NewWithClock is New with another time than the process's.
func NewWithClock(log Log, scheme *runtime.Scheme, kinds []*resource.Any, clock clock.PassiveClock) *Store {
	s := &Store{
		log:    log,
		clock:  clock,
		codec:  codec{serializer: protobuf.NewSerializer(scheme, scheme)},
		tables: make(map[schema.GroupVersionResource]*Table, len(kinds)),
	}
	byResource := make(map[schema.GroupResource]*resource.Any, len(kinds))
	for _, k := range kinds {
		if k.ToStored == nil { // two versions may have one name
			byResource[k.GroupResource()] = k
		}
	}
	for _, k := range kinds {
		gr := k.StorageResource()
		s.tables[k.GroupVersionResource()] = &Table{store: s, kind: k, stored: byResource[gr], prefix: resourcePrefix(gr)}
	}
	return s
}

// Now is the cluster's time, by which objects are made, deleted and judged.
func (s *Store) Now() time.Time { return s.clock.Now() }

// Now is the store's.
func (t *Table) Now() time.Time { return t.store.Now() }

// Now is the store's.
func (v *View) Now() time.Time { return v.table.Now() }

// Table returns the table of a kind that New was given; any other is a bug.
func (s *Store) Table(gvr schema.GroupVersionResource) *Table {
	t, ok := s.tables[gvr]
	if !ok {
		panic(fmt.Sprintf("storage: no kind is served as %s", gvr))
	}
	return t
}

// Serves reports whether there is a table of the kind.
func (s *Store) Serves(gvr schema.GroupVersionResource) bool {
	_, ok := s.tables[gvr]
	return ok
}

// Revision is the newest revision applied on this replica.
func (s *Store) Revision() uint64 { return s.log.Root().Revision }

// LinearizableRevision returns a revision that holds every write acknowledged
// before the call, by any replica; it is applied here when it returns.
func (s *Store) LinearizableRevision(ctx context.Context) (uint64, error) {
	root, err := s.log.ReadIndex(ctx)
	if err != nil {
		return 0, err
	}
	return root.Revision, nil
}

// Count returns how many objects the table holds on this replica.
func (t *Table) Count() int { return t.store.log.Root().Count(t.prefix) }

// rootAtLeast returns a root as a resourceVersion asks for it: "" the newest of the cluster, "0" what is here, N at least N.
func (s *Store) rootAtLeast(ctx context.Context, resourceVersion string) (*state.Root, error) {
	switch resourceVersion {
	case "":
		root, err := s.log.ReadIndex(ctx)
		return root, unavailable(err)
	case "0":
		return s.recent(ctx)
	}
	revision, err := ParseResourceVersion(resourceVersion)
	if err != nil {
		return nil, err
	}
	return s.waitRevision(ctx, revision)
}

// recent returns what is here, once this replica has caught up after its start. A replica that has just started may know nothing yet, and
// an agent that gets an empty list of its pods ends them all.
func (s *Store) recent(ctx context.Context) (*state.Root, error) {
	if s.caughtUp.Load() {
		return s.log.Root(), nil
	}
	root, err := s.log.ReadIndex(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	s.caughtUp.Store(true)
	return root, nil
}

func (s *Store) waitRevision(ctx context.Context, revision uint64) (*state.Root, error) {
	if root := s.log.Root(); root.Revision >= revision {
		return root, nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, futureRevisionWait)
	defer cancel()
	root, err := s.log.WaitRevision(waitCtx, revision)
	if err != nil && ctx.Err() == nil {
		return nil, tooLargeResourceVersion(revision, s.log.Root().Revision)
	}
	return root, unavailable(err)
}

// ParseResourceVersion turns a client's resourceVersion into a revision; text that is not a number is the client's mistake (400).
func ParseResourceVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, invalidResourceVersion(text, err)
	}
	return revision, nil
}

func formatRevision(revision uint64) string { return strconv.FormatUint(revision, 10) }
