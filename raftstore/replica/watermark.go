package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/internal/aligned"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// watermarkEvery is how often the watermark follows a log that grows. An older copy
// of the log, put in the place of the newest, is noticed if it misses what was
// committed before the last mark.
const watermarkEvery = time.Second

// checkReach verifies that the log and the newest snapshot reach as far as this
// server is known to have been, and that its term is not older than what it holds.
func (r *Replica) checkReach(newest *raft.SnapshotMeta) error {
	var reach, term uint64
	if newest != nil {
		reach, term, r.newest = newest.Index, newest.Term, newest.Index
	}
	last, err := r.log.LastIndex()
	if err != nil {
		return err
	}
	if last >= reach && last > 0 {
		var entry raft.Log
		if err := r.log.GetLog(last, &entry); err != nil {
			return err
		}
		reach, term = last, entry.Term
	}
	current, err := r.stable.GetUint64([]byte(termstore.TermKey))
	if err != nil && !isNotFound(err) {
		return err
	}
	if current < term {
		return fmt.Errorf("%w: in term %d with entries of term %d", ErrStateLost, current, term)
	}
	mark, err := r.cfg.Storage.marks.LoadWatermark()
	if err != nil {
		return err
	}
	if mark.ServerID == r.memberID() && (reach < mark.Index || current < mark.Term) {
		return fmt.Errorf("%w: the log ends at %d in term %d, it was at %d in term %d",
			ErrStateLost, reach, current, mark.Index, mark.Term)
	}
	r.watermark.Store(mark.Index)
	return nil
}

// followWatermark marks how far the log is while it grows, until the context ends.
func (r *Replica) followWatermark(ctx context.Context) {
	for {
		select {
		case <-aligned.After(watermarkEvery):
			r.markReach()
		case <-ctx.Done():
			r.markReach()
			return
		}
	}
}

// markReach writes the watermark if the log was committed further than it says.
// That it is old harms nothing, so an error is only told. One goroutine calls it.
func (r *Replica) markReach() {
	r.letMove()
	index := r.raft.CommitIndex()
	if index <= r.watermark.Load() || r.Failed() != nil {
		return
	}
	err := r.cfg.Storage.marks.SaveWatermark(marks.Watermark{ServerID: r.id, Index: index, Term: r.raft.CurrentTerm()})
	if err != nil {
		r.cfg.Logger.Warn("watermark not written", "err", err)
		return
	}
	r.watermark.Store(index)
}

// letMove allows that the log is moved to segments, once all members can read them. It tells once what is in the way.
func (r *Replica) letMove() {
	if r.state.Root().FeatureLevel < SegmentsLevel {
		return
	}
	if err := r.cfg.Storage.letMove(); err != nil && !r.moveTold.Swap(true) {
		r.cfg.Logger.Warn("the log cannot be moved to segments", "err", err)
	}
}

// committed is the last index that is known to be committed, from the time before the
// start too.
func (r *Replica) committed() uint64 {
	known := r.watermark.Load()
	if instance := r.running.Load(); instance != nil {
		known = max(known, instance.CommitIndex())
	}
	return known
}
