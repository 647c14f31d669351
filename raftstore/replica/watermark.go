package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"time"

	"github.com/hashicorp/raft"
)

// watermarkEvery is how often the watermark follows a log that grows. An older copy
// of the log, put in the place of the newest, is noticed if it misses what was
// committed before the last mark.
const watermarkEvery = 10 * time.Second

// watermark says how far a server's log reached, and its term. It lies apart from
// the log, like the marker: an old copy of the log is whole in itself.
type watermark struct {
	// ServerID is whose it is: under a new id a server begins anew.
	ServerID string `json:"serverID"`
	// Index was committed, in Term or before.
	Index    uint64 `json:"index"`
	Term     uint64 `json:"term"`
	Checksum uint32 `json:"checksum"`
}

func (w *watermark) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%q %d %d", w.ServerID, w.Index, w.Term), castagnoli)
}

// watermarkStore keeps the watermark: load returns an empty one if there is none,
// save returns when it would survive a power cut.
type watermarkStore interface {
	loadWatermark() (watermark, error)
	saveWatermark(watermark) error
}

// watermarkFile is the path of one.
type watermarkFile string

func (f watermarkFile) loadWatermark() (w watermark, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("reading the watermark: %w", err)
	}
	if err := json.Unmarshal(data, &w); err != nil || w.Checksum != w.sum() {
		return w, fmt.Errorf("%w: watermark %s", ErrCorrupt, f)
	}
	return w, nil
}

func (f watermarkFile) saveWatermark(w watermark) error {
	w.Checksum = w.sum()
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := replaceSynced(string(f), append(data, '\n')); err != nil {
		return fmt.Errorf("writing the watermark: %w", err)
	}
	return nil
}

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
	current, err := r.stable.GetUint64([]byte("CurrentTerm"))
	if err != nil && !isNotFound(err) {
		return err
	}
	if current < term {
		return fmt.Errorf("%w: in term %d with entries of term %d", ErrStateLost, current, term)
	}
	mark, err := r.cfg.Storage.watermark.loadWatermark()
	if err != nil {
		return err
	}
	if mark.ServerID == r.memberID() && (reach < mark.Index || current < mark.Term) {
		return fmt.Errorf("%w: the log ends at %d in term %d, it was at %d in term %d",
			ErrStateLost, reach, current, mark.Index, mark.Term)
	}
	r.watermark = mark.Index
	return nil
}

// followWatermark marks how far the log is while it grows, until the context ends.
func (r *Replica) followWatermark(ctx context.Context) {
	tick := time.NewTicker(watermarkEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
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
	index := r.raft.CommitIndex()
	if index <= r.watermark || r.Failed() != nil {
		return
	}
	err := r.cfg.Storage.watermark.saveWatermark(watermark{ServerID: r.id, Index: index, Term: r.raft.CurrentTerm()})
	if err != nil {
		r.cfg.Logger.Warn("watermark not written", "err", err)
		return
	}
	r.watermark = index
}
