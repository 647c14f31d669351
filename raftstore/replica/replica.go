package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/latencies"
	"github.com/setpoint-io/setpoint/raftstore/replica/logbridge"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
	"github.com/setpoint-io/setpoint/raftstore/replica/transport"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// closeLimit bounds Close when the disk hangs.
const closeLimit = 10 * time.Second

// Replica is one member of the cluster, or one that is on its way to be.
type Replica struct {
	cfg Config
	// id is the member id under which raft runs. It, raft, log, stable and those
	// that start makes may be used by others once running is set.
	id   string
	raft *raft.Raft
	// running is raft for those who may ask before it has started.
	running atomic.Pointer[raft.Raft]
	state   *state.State
	log     *checkedLog
	stable  *termstore.Store
	// founding: start writes the first log entry.
	founding bool

	markMu sync.Mutex
	mark   *marks.Marker
	// changeMu is held by those who change the marker while raft runs.
	changeMu sync.Mutex
	space    *spaceWatch
	applies  latencies.Recent
	diskSlow chan struct{}

	transport *transport.Transport
	teller    *transport.Teller
	tracker   *leadershipTracker

	failed   atomic.Pointer[error]
	failOnce sync.Once
	// watermark is the index of the watermark.
	watermark atomic.Uint64
	// moveTold: it was told that the log cannot be moved.
	moveTold atomic.Bool
	// newest is the index of the newest snapshot found at the start.
	newest uint64

	// failing is closed by fail, so that whoever waits learns of it.
	failing chan struct{}
	// ended is closed once raft has shut down.
	ended   chan struct{}
	endOnce sync.Once

	// ctx ends when the replica closes.
	ctx      context.Context
	cancel   context.CancelFunc
	children sync.WaitGroup
}

// Open checks the stored data and starts the replica, unless it is Fresh or
// Damaged (see Beginning): then Found or Rejoin starts it. Errors wrap
// ErrStateLost, ErrForeignData or ErrCorrupt; lost and corrupt data of a server
// with peers is no error, but Damaged.
func Open(ctx context.Context, cfg Config) (*Replica, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Timing = cfg.Timing.withDefaults()
	r := &Replica{cfg: cfg, failing: make(chan struct{}), ended: make(chan struct{}), space: newSpaceWatch(), diskSlow: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.state = state.New(state.Options{RingBytes: cfg.RingBytes, OnComparison: cfg.Compared})
	r.tracker = newLeadershipTracker(r)
	err := r.openStored(ctx)
	if err == nil {
		return r, nil
	}
	if r.mayRejoin(err) {
		r.damaged(err)
		return r, nil
	}
	r.cancel()
	if cfg.Storage == nil && r.cfg.Storage != nil {
		err = errors.Join(err, r.cfg.Storage.Close())
	}
	return nil, err
}

func (r *Replica) openStored(ctx context.Context) error {
	storage := r.cfg.Storage
	if storage == nil {
		var err error
		if storage, err = r.cfg.Disk.Open(ctx); err != nil {
			return err
		}
	}
	if err := r.attach(storage); err != nil {
		return err
	}
	exists, err := r.inspect(ctx)
	if err != nil {
		return err
	}
	r.log.afterWrite = (&markOnWrite{save: r.saveHeld, done: exists}).wrote
	return r.begin(exists)
}

// attach puts the checks around a storage.
func (r *Replica) attach(storage *Storage) error {
	r.cfg.Storage = storage
	if err := r.openSpace(); err != nil {
		return err
	}
	guard := &diskGuard{fail: r.fail, limit: r.cfg.Timing.DiskStall, slow: r.diskSlow, relieve: r.space.Relieve}
	r.log = newCheckedLog(storage.logs, guard, r.cfg.Timing.SnapshotBytes)
	r.log.stateBytes, r.log.limitMax = func() int64 { return r.state.Root().Bytes() }, r.space.logBytesMax
	r.log.grew, r.log.committed, r.log.sliced = r.space.Wrote, r.committed, storage.sliced
	r.stable = storage.terms(guard)
	return nil
}

// start builds the transport and raft, and the goroutines around them.
func (r *Replica) start(id string) error {
	r.id = id
	r.transport = transport.New(transport.Config{
		ID: id, Address: r.cfg.AdvertiseAddress, Dial: r.cfg.Dial, Name: MemberName, Addresses: r.addresses, Leads: r.Leads,
		Follows: r.follows, IsMember: r.isMember, Beat: min(r.cfg.Timing.HeartbeatTimeout, r.cfg.Timing.LeaderLease) * 2 / 5,
		Introduce: r.introduce, Meet: r.meet, Refuses: r.refuses, Stopped: r.Failed,
		Logger: r.cfg.Logger, Raft: logbridge.New(r.cfg.Logger),
	})
	r.teller = r.newTeller()
	notify := make(chan bool, notifyBuffer)
	conf := r.raftConfig(notify)
	if err := r.prepare(conf); err != nil {
		r.transport.Close()
		return fmt.Errorf("forming the cluster: %w", err)
	}
	r.stable.RaftRuns()
	var instance *raft.Raft
	err := caught(func() (err error) {
		instance, err = raft.NewRaft(conf, &machine{replica: r}, r.log, r.stable, r.cfg.Storage.snapshots, r.transport)
		return err
	})
	if refused := r.Failed(); refused != nil {
		if instance != nil {
			instance.Shutdown()
		}
		r.transport.Close()
		return refused
	}
	if err != nil {
		r.transport.Close()
		return fmt.Errorf("starting raft: %w", errors.Join(err, r.cfg.Storage.snapshotFailure()))
	}
	if used := snapshotIndex(instance); used != r.newest {
		instance.Shutdown()
		r.transport.Close()
		return fmt.Errorf("%w: snapshot up to %d cannot be read", ErrCorrupt, r.newest)
	}
	r.cfg.Storage.reportDamage(r.fail)
	r.raft = instance
	r.running.Store(instance)
	r.tracker.attach(notify)
	members := instance.GetConfiguration().Configuration().Servers
	r.children.Go(func() { r.transport.MeetAll(r.ctx, r.cfg.Timing.HeartbeatTimeout, members) })
	r.children.Go(func() { r.tracker.run(r.ctx) })
	r.children.Go(func() { r.teller.Run(r.ctx) })
	r.children.Go(func() { r.compact(r.ctx) })
	r.children.Go(func() { r.followWatermark(r.ctx) })
	r.children.Go(func() { r.watchSpace(r.ctx) })
	r.electFirst()
	return nil
}

// prepare writes what must be on disk before raft runs.
func (r *Replica) prepare(conf *raft.Config) error {
	if err := r.stable.Sign(r.id); err != nil {
		return err
	}
	if !r.founding {
		return nil
	}
	return r.found(conf)
}

// started reports whether raft runs.
func (r *Replica) started() bool { return r.running.Load() != nil }

func (r *Replica) raftConfig(notify chan<- bool) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(r.id)
	conf.HeartbeatTimeout = r.cfg.Timing.HeartbeatTimeout
	conf.ElectionTimeout = r.cfg.Timing.ElectionTimeout
	conf.LeaderLeaseTimeout = r.cfg.Timing.LeaderLease
	conf.CommitTimeout = r.cfg.Timing.idleTimeout()
	conf.MaxAppendEntries = r.cfg.Timing.MaxAppendEntries
	conf.ShutdownOnRemove = false
	conf.NotifyCh = notify
	conf.Logger = logbridge.New(r.cfg.Logger)
	conf.NoLegacyTelemetry = true
	// compact decides by bytes; the library would count entries.
	conf.SnapshotThreshold = 1 << 62
	conf.SnapshotInterval = 24 * time.Hour
	conf.TrailingLogs = trailingEntriesMax
	return conf
}

// Propose replicates the entry and returns the results of its commands, in order.
// It returns early with ctx's error; the entry may then still take effect.
func (r *Replica) Propose(ctx context.Context, e *command.Entry) ([]command.Result, error) {
	if err := r.Failed(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProposed, err)
	}
	if !r.started() {
		return nil, fmt.Errorf("%w: %w", ErrNotProposed, ErrNotLeader)
	}
	data := e.Marshal()
	var future raft.ApplyFuture
	err := r.await(ctx, func() raft.Future {
		future = r.raft.Apply(data, 0)
		return future
	})
	if err != nil {
		return nil, proposeError(err)
	}
	switch response := future.Response().(type) {
	case []command.Result:
		return response, nil
	case error:
		return nil, response
	default:
		return nil, fmt.Errorf("replica: unexpected response %T", response)
	}
}

// proposeError tells the errors raft gives before it appends an entry from those
// after which the entry may be committed.
func proposeError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress),
		errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", ErrNotProposed, ErrNotLeader)
	case errors.Is(err, raft.ErrLeadershipLost):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return err
}

// State returns the state machine. It is for reading: only raft applies to it.
func (r *Replica) State() *state.State { return r.state }

// ID returns the member id under which raft runs, "" before it does.
func (r *Replica) ID() string {
	if !r.started() {
		return ""
	}
	return r.id
}

// Term returns the current raft term of this replica, 0 before raft runs.
func (r *Replica) Term() uint64 {
	if !r.started() {
		return 0
	}
	return r.raft.CurrentTerm()
}

// fail stops the replica for good and says so, once.
func (r *Replica) fail(err error) {
	r.failOnce.Do(func() {
		r.failed.Store(&err)
		close(r.failing)
		r.cfg.Logger.Error("replica must stop", "err", err)
		// Fatal may wait for goroutines that hold the caller's locks.
		go func() {
			if r.mayRejoin(err) {
				r.markDamaged()
			}
			r.cfg.Fatal(err)
		}()
	})
}

// Stop stops the replica for good, for a reason that only its caller can see: ErrDiverged,
// after which its data counts as damaged, or ErrUndecided.
func (r *Replica) Stop(reason error) { r.fail(reason) }

// Failed returns why the replica stopped itself, or nil.
func (r *Replica) Failed() error {
	if p := r.failed.Load(); p != nil {
		return fmt.Errorf("%w: %w", ErrStopped, *p)
	}
	return nil
}

// Leads reports whether raft leads here in the term.
func (r *Replica) Leads(term uint64) bool {
	instance := r.running.Load()
	return instance != nil && instance.State() == raft.Leader && instance.CurrentTerm() == term
}

// follows reports whether raft follows here in the term, which is the current one. Both
// may change at any moment; a term that has passed never comes back.
func (r *Replica) follows(term uint64) bool {
	instance := r.running.Load()
	return instance != nil && r.Failed() == nil && instance.State() == raft.Follower && instance.CurrentTerm() == term
}

// Failing is closed when the replica stops itself.
func (r *Replica) Failing() <-chan struct{} { return r.failing }

// Close stops raft and closes the storage. The caller must have ended its own
// calls before: of those that raft does not answer nobody learns how they ended. If the storage
// hangs it gives up after closeLimit with ErrDiskStalled and leaves behind what
// waits for it.
func (r *Replica) Close() error {
	r.cancel()
	closed := make(chan error, 1)
	go func() { closed <- r.close() }()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case err := <-closed:
		return err
	case <-limit.C:
		return fmt.Errorf("%w: not closed after %v", ErrDiskStalled, closeLimit)
	}
}

func (r *Replica) close() error {
	var err error
	if r.started() {
		r.tracker.stop()
		r.transport.Leave()
		err = r.raft.Shutdown().Error()
		r.endOnce.Do(func() { close(r.ended) })
		r.transport.CloseConns()
		r.children.Wait()
	}
	if r.cfg.Storage == nil {
		return err
	}
	return errors.Join(err, r.cfg.Storage.Close())
}
