package replica

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// notifyBuffer lets raft go on while the tracker looks at earlier news.
	notifyBuffer = 16
	// barrierRetry is the pause between two tries of the first entry of a term.
	barrierRetry = 10 * time.Millisecond
)

// Leadership is what this replica knows of who leads.
type Leadership struct {
	// Leader: this replica leads, and has applied an entry of its own term.
	Leader bool
	// LeaderID and LeaderAddress are empty while no leader is known.
	LeaderID, LeaderAddress string
	// Term is the raft term. It grows with every election, so a leadership that was lost and won again is visible
	// even to a reader that missed the time in between.
	Term uint64
	// Ready: requests can be served now, here or by the leader named.
	Ready bool
	// Elections counts the leaders that this replica has known since it started, one for each term.
	Elections uint64
}

// leadershipTracker follows raft's elections. Its run is the only writer of
// current.
type leadershipTracker struct {
	replica  *Replica
	notify   <-chan bool
	observed chan raft.Observation
	observer *raft.Observer
	// barriers reports terms whose first entry was applied here.
	barriers chan uint64

	mu      sync.Mutex
	current Leadership
	changed chan struct{}
	since   time.Time // when the leader became another
	elected uint64    // the last term with a known leader
}

func newLeadershipTracker(r *Replica) *leadershipTracker {
	return &leadershipTracker{
		replica: r, changed: make(chan struct{}), since: time.Now(),
		observed: make(chan raft.Observation, 1), barriers: make(chan uint64),
	}
}

// attach follows raft, which runs from now on.
func (t *leadershipTracker) attach(notify <-chan bool) {
	t.notify = notify
	// An observation is only a reason to look, so one waiting is enough.
	t.observer = raft.NewObserver(t.observed, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	t.replica.raft.RegisterObserver(t.observer)
}

func (t *leadershipTracker) stop() { t.replica.raft.DeregisterObserver(t.observer) }

// run ends with ctx, after its children.
func (t *leadershipTracker) run(ctx context.Context) {
	var children sync.WaitGroup
	defer children.Wait()
	leads := false
	t.publish(t.follower())
	for {
		select {
		case <-ctx.Done():
			return
		case won := <-t.notify:
			leads = won
			if won {
				t.publish(Leadership{LeaderID: t.replica.id, LeaderAddress: t.replica.cfg.AdvertiseAddress, Term: t.replica.Term()})
				children.Go(func() { t.barrier(ctx) })
			} else {
				t.publish(t.follower())
			}
		case <-t.observed:
			if !leads {
				t.publish(t.follower())
			}
		case term := <-t.barriers:
			if leads && t.replica.Leads(term) {
				t.publish(Leadership{Leader: true, Ready: true, Term: term,
					LeaderID: t.replica.id, LeaderAddress: t.replica.cfg.AdvertiseAddress})
				t.replica.teller.Notify() // what was applied before this was published was told nobody
			}
		}
	}
}

// barrier puts an entry through the log and reports its term. Until it is applied the state may lack writes
// that the previous leader acknowledged. A term that was lost before is not reported: by the time anybody
// looks, it may be won after all.
func (t *leadershipTracker) barrier(ctx context.Context) {
	term := t.replica.Term()
	for t.replica.Leads(term) {
		if t.replica.await(ctx, func() raft.Future { return t.replica.raft.Barrier(0) }) == nil {
			select {
			case t.barriers <- term:
			case <-ctx.Done():
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(barrierRetry):
		}
	}
}

// follower is what raft says of another's leadership.
func (t *leadershipTracker) follower() Leadership {
	address, id := t.replica.raft.LeaderWithID()
	l := Leadership{LeaderID: string(id), LeaderAddress: string(address), Term: t.replica.Term()}
	if l.LeaderID == t.replica.id {
		// Not yet, or no longer: notify will tell.
		return Leadership{Term: l.Term}
	}
	l.Ready = l.LeaderID != ""
	return l
}

func (t *leadershipTracker) publish(l Leadership) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.Elections = t.current.Elections
	if l.LeaderID != "" && l.Term > t.elected {
		t.elected = l.Term
		l.Elections++
	}
	if l == t.current {
		return
	}
	if l.LeaderID != t.current.LeaderID {
		t.since = time.Now()
	}
	t.current = l
	close(t.changed)
	t.changed = make(chan struct{})
}

// Leadership returns what is known now, and a channel that is closed when it
// changes.
func (r *Replica) Leadership() (Leadership, <-chan struct{}) {
	r.tracker.mu.Lock()
	defer r.tracker.mu.Unlock()
	return r.tracker.current, r.tracker.changed
}
