package raftstoretest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// Store is the part of raftstore's face that upper layers read and write by.
type Store interface {
	// Propose commits the command and returns its result, or the context's error
	// with the outcome unknown.
	Propose(ctx context.Context, c command.Command) (command.Result, error)
	// Root returns the local state, which may lag behind.
	Root() *state.Root
	// ReadIndex returns a state that includes every write acknowledged before the
	// call, on any replica.
	ReadIndex(ctx context.Context) (*state.Root, error)
	// WaitRevision waits until the local state has reached the revision.
	WaitRevision(ctx context.Context, revision uint64) (*state.Root, error)
	// RootAt returns the state as it was, or state.ErrCompacted, state.ErrFuture.
	RootAt(revision uint64) (*state.Root, error)
	// Watch follows changes, or fails with watch.ErrCompacted.
	Watch(prefix string, after uint64) (*watch.Watcher, error)
	// Led ends while this replica has no leader.
	Led() context.Context
}

var _ Store = (*Local)(nil)

// Local is a store of one replica in memory. Its methods may be called from many
// goroutines.
type Local struct {
	mu          sync.Mutex
	state       *state.State
	index, term uint64
}

// NewLocal returns an empty store in term 1.
func NewLocal(options state.Options) *Local {
	return &Local{state: state.New(options), term: 1}
}

// Propose applies the command at once. It goes through bytes, as it would
// through the log.
func (l *Local) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	if err := ctx.Err(); err != nil {
		return command.Result{}, err
	}
	if err := c.Validate(); err != nil {
		return command.Result{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	packed := command.Entry{FormatVersion: command.FormatVersion, Term: l.term, Commands: []command.Command{c}}
	entry, err := command.Unmarshal(packed.Marshal())
	if err != nil {
		return command.Result{}, fmt.Errorf("local store: %w", err)
	}
	l.index++
	entry.UnixNanos = time.Now().UnixNano()
	return l.state.Apply(l.index, l.term, entry)[0], nil
}

// NextTerm begins a new term, as an election would, and returns it: commands
// fenced with an older one are refused from now on.
func (l *Local) NextTerm() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term++
	return l.term
}

// Root returns the present state.
func (l *Local) Root() *state.Root { return l.state.Root() }

// ReadIndex returns the present state: a lone replica is never behind.
func (l *Local) ReadIndex(ctx context.Context) (*state.Root, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return l.state.Root(), nil
}

// WaitRevision waits until the revision has been reached.
func (l *Local) WaitRevision(ctx context.Context, revision uint64) (*state.Root, error) {
	return l.state.WaitRevision(ctx, revision)
}

// RootAt returns the state as it was at a revision.
func (l *Local) RootAt(revision uint64) (*state.Root, error) { return l.state.RootAt(revision) }

// Bounds returns the revisions between which the watch history is complete.
func (l *Local) Bounds() (compacted, last uint64) { return l.state.Ring().Bounds() }

// EventAt returns the change that made a revision.
func (l *Local) EventAt(revision uint64) (watch.Event, bool) { return l.state.Ring().At(revision) }

// Watch follows the changes after a revision.
func (l *Local) Watch(prefix string, after uint64) (*watch.Watcher, error) {
	return l.state.Ring().Watch(prefix, after)
}

// Led never ends: a lone replica leads.
func (l *Local) Led() context.Context { return context.Background() }

// State returns the state machine, for tests that look closer.
func (l *Local) State() *state.State { return l.state }
