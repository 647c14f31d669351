package raftstore

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/contact"
	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/replica"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

const (
	// transferLimit bounds handing leadership over at shutdown.
	transferLimit = 2 * time.Second
	// drainLimit bounds waiting for commands under way at shutdown. A leader that
	// lost its quorum gives them up after its lease, well before.
	drainLimit = 5 * time.Second
)

// Store is this server's replica of the store.
type Store struct {
	cfg     Config
	replica *replica.Replica
	peers   *forward.Client

	// book remembers, outside of the data directory, that there is a cluster.
	book *founded.Book
	// toldRecord: a record that could not be written was told of.
	toldRecord bool

	sessions sessionKeeper
	// local packs commands into log entries while this replica leads, remote
	// into requests to the leader while it does not.
	local, remote *batcher
	// confirm asks a quorum whether this replica leads, ask asks the leader.
	confirm, ask coalescer
	// contact says whether this server has a leader.
	contact *contact.Contact
	// quorum saves confirm its messages; seen is what a follower's words name.
	quorum quorumProof
	seen   atomic.Pointer[seenRound]

	// changing has room while nobody changes the membership here.
	changing chan struct{}

	// hungUp has a message when a connection of a peer has ended.
	hungUp chan struct{}

	// claims are what the members' states were, compareAsked has a message when one asks
	// for a comparison.
	claims       *claims
	compareAsked chan struct{}

	// stepDowns counts leaderships that ended with nobody to follow.
	stepDowns atomic.Uint64

	// noRoom is why writes are refused now, nil if they are not.
	noRoom atomic.Pointer[error]

	// ctx ends when everything must; stopping is closed when nothing may begin.
	ctx    context.Context
	cancel context.CancelFunc
	// objectsLimit is what all objects may take; see Config.ObjectsLimitBytes.
	objectsLimit int64
	stopping     chan struct{}
	stopOnce     sync.Once
	stopErr      error
	children     sync.WaitGroup
}

// Open starts the replica and returns; see Leadership for when it serves. A founder
// without data asks its peers first, and one with damaged data waits for a leader
// and comes back under a new id: both while Handler is served. Errors wrap ErrStateLost, ErrForeignData or ErrCorrupt where the data
// directory must not be used, and founded.ErrBefore where an empty one must not found a cluster.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.FeatureLevel = cmp.Or(cfg.FeatureLevel, FeatureLevel)
	found := newClaims()
	book := founded.Open(cfg.Founded)
	r, err := replica.Open(ctx, replica.Config{
		FeatureLevel: cfg.FeatureLevel,
		ID:           cfg.Name, AdvertiseAddress: cfg.AdvertiseAddress, ClusterID: cfg.ClusterID,
		InitialServers: cfg.InitialServers, Disk: cfg.disk(), Storage: cfg.Storage, Dial: cfg.Dial, Fatal: cfg.Fatal,
		Timing: cfg.Timing, RingBytes: cfg.RingBytes, Compared: found.applied, Applying: cfg.Applying, Logger: cfg.Logger,
		Founds: func(founders map[string]string) error { return writeFounded(book, cfg, founders) },
	})
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, replica: r, book: book, stopping: make(chan struct{}),
		changing: make(chan struct{}, 1), hungUp: make(chan struct{}, 1),
		claims: found, compareAsked: make(chan struct{}, 1), contact: contact.New()}
	s.objectsLimit = cfg.objectsLimit()
	s.keepOld()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.peers = forward.NewClient(cfg.peerClient())
	s.sessions.open = s.openSession
	s.local = newBatcher(s.ctx, s.shipToLog)
	s.remote = newBatcher(s.ctx, s.shipToLeader)
	s.confirm.fetch, s.ask.fetch = s.confirmRevision, s.askRevision
	for _, child := range []func(){s.local.run, s.remote.run, s.compareStates, s.compareAnew, s.followDoubts,
		s.nameCluster, s.raiseLevel, s.followRoom, s.rejoin, s.electEarly, s.followLoss, s.followContact, s.followDisk} {
		s.children.Go(child)
	}
	return s, nil
}

// Root returns the local state as of now, without waiting.
func (s *Store) Root() *state.Root { return s.replica.State().Root() }

// RootAt returns the local state as it was at a revision, or state.ErrCompacted,
// or state.ErrFuture.
func (s *Store) RootAt(revision uint64) (*state.Root, error) {
	return s.replica.State().RootAt(revision)
}

// EventAt returns the change that made a revision, if the watch history still holds it.
func (s *Store) EventAt(revision uint64) (watch.Event, bool) {
	return s.replica.State().Ring().At(revision)
}

// WaitRevision returns the local state once it has reached the revision.
func (s *Store) WaitRevision(ctx context.Context, revision uint64) (*state.Root, error) {
	if root := s.Root(); root.Revision >= revision {
		return root, nil
	}
	return s.wait(ctx, func(ctx context.Context) (*state.Root, error) {
		return s.replica.State().WaitRevision(ctx, revision)
	})
}

// waitCommitted returns the local state once it has everything which any server had
// applied before the call, if this one leads.
func (s *Store) waitCommitted(ctx context.Context) (*state.Root, error) {
	index, err := s.replica.CommittedCommand()
	if err != nil {
		return nil, err
	}
	if root := s.Root(); root.Index >= index {
		return root, nil
	}
	return s.wait(ctx, func(ctx context.Context) (*state.Root, error) {
		return s.replica.State().WaitIndex(ctx, index)
	})
}

// wait waits while the store runs.
func (s *Store) wait(ctx context.Context, reach func(context.Context) (*state.Root, error)) (*state.Root, error) {
	ctx, cancel := s.whileRunning(ctx)
	defer cancel()
	root, err := reach(ctx)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	return root, nil
}

// Watch follows the changes after a revision to keys with the prefix; "" is all.
// It fails with watch.ErrCompacted if some are forgotten.
func (s *Store) Watch(prefix string, after uint64) (*watch.Watcher, error) {
	return s.replica.State().Ring().Watch(prefix, after)
}

// Since returns the changes after a revision that this replica has applied, as Watch would tell them.
func (s *Store) Since(revision uint64) ([]watch.Event, error) {
	return s.replica.State().Ring().Since(revision)
}

// Bounds returns the revisions between which the watch history of this replica is complete.
func (s *Store) Bounds() (compacted, last uint64) { return s.replica.State().Ring().Bounds() }

// StateHash returns a hash of all objects and the revision it belongs to. Replicas
// at the same revision have the same.
func (s *Store) StateHash() (revision uint64, hash [command.HashBytes]byte) {
	return s.replica.State().Hash()
}

// HandleRaftConn serves a raft connection that a peer opened with its Dial. The
// connection is authenticated already. It returns when the connection is closed.
func (s *Store) HandleRaftConn(conn net.Conn) {
	if s.replica.HandleConn(conn) {
		s.peerHungUp()
	}
}

// Handler returns the service for the other servers, and the pattern to mount it
// at. Requests that Config.AuthorizePeer refuses get 403.
func (s *Store) Handler() (pattern string, handler http.Handler) {
	return forward.NewHandler(backend{s}, s.cfg.AuthorizePeer)
}

// TransferLeadership makes another server the leader, within milliseconds. It
// fails with ErrNotLeader on a follower.
func (s *Store) TransferLeadership(ctx context.Context) error {
	if !s.Leadership().Leader {
		return ErrNotLeader
	}
	return s.handOver(ctx)
}

// Shutdown hands leadership over while ctx lasts, then stops; with a context that
// has ended it stops at once. It may be called more than once; each call returns
// after the store has stopped.
func (s *Store) Shutdown(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.shutdown(ctx) })
	return s.stopErr
}

func (s *Store) shutdown(ctx context.Context) error {
	if s.shouldHandOver(ctx) {
		ctx, cancel := context.WithTimeout(ctx, transferLimit)
		if err := s.handOver(ctx); err != nil {
			s.cfg.Logger.Warn("stopping without handing leadership over", "err", err)
		}
		cancel()
	}
	close(s.stopping)
	// Raft answers commands under way while it runs, not all once it stops.
	drained := time.AfterFunc(drainLimit, s.cancel)
	s.local.drain()
	s.remote.drain()
	s.confirm.drain()
	drained.Stop()
	s.cancel()
	s.ask.drain()
	s.children.Wait()
	return s.replica.Close()
}

func (s *Store) shouldHandOver(ctx context.Context) bool {
	if ctx.Err() != nil || !s.Leadership().Leader || s.replica.Failed() != nil {
		return false
	}
	_, ok := s.successor()
	return ok
}

// whileRunning derives a context that ends, with ErrStopped as its cause, when
// the store does.
func (s *Store) whileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(ErrStopped) })
	return ctx, func() { stop(); cancel(nil) }
}

// check returns why nothing may begin any more, or nil.
func (s *Store) check() error {
	select {
	case <-s.stopping:
		return fmt.Errorf("%w: shutting down", ErrStopped)
	default:
		return s.replica.Failed()
	}
}
