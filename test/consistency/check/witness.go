package check

import (
	"container/heap"
	"math"
	"slices"
	"sort"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// Witness checks real time against the order that the revisions witness. Each
// answer was true during some revisions: a write at its own, a read or a refusal
// from one version of its key to the next, a list at its own. Some of these must lie
// after all that any client had been shown before the call, and before whatever was
// asked for only after the return. So one order explains all keys at once
// (strict serializability). Reads of any age (Level Any and AtLeast) must only
// not go back on one replica. Linear time, but for the searches in one key's versions.
func Witness(e *history.Epoch, log *Log) Result {
	r := Result{Checker: "witness: no stale read, across keys"}
	w := &witness{log: log, ofReplica: map[int]*horizon{}}
	ops := make([]*history.Op, 0, len(e.Ops))
	for i := range e.Ops {
		ops = append(ops, &e.Ops[i])
	}
	slices.SortFunc(ops, func(a, b *history.Op) int { return int(a.Call - b.Call) })
	w.readUpper(ops)
	for _, op := range ops {
		if allowed := w.allows(op); allowed != nil {
			r.Checked++
			w.judge(op, allowed, &r)
		}
	}
	return r
}

type witness struct {
	log  *Log
	open horizon
	// ofReplica is the same for the reads of any age, which each replica answers alone.
	ofReplica map[int]*horizon
	calls     []int64  // of writes, in order
	upper     []uint64 // the oldest revision written by calls[i] or a later one
}

// readUpper prepares before.
func (w *witness) readUpper(ops []*history.Op) {
	for _, op := range ops {
		if revision := w.point(op); op.Writes() && op.Outcome == history.OK && revision != 0 {
			w.calls = append(w.calls, op.Call)
			w.upper = append(w.upper, revision)
		}
	}
	for i := len(w.upper) - 2; i >= 0; i-- {
		w.upper[i] = min(w.upper[i], w.upper[i+1])
	}
}

// before is the oldest revision that was written by a call after the time at.
func (w *witness) before(at int64) uint64 {
	i := sort.Search(len(w.calls), func(i int) bool { return w.calls[i] > at })
	if i == len(w.calls) {
		return math.MaxUint64
	}
	return w.upper[i]
}

// point is the revision of an acknowledged write.
func (w *witness) point(op *history.Op) uint64 {
	if op.Kind != history.Delete {
		return op.Revision
	}
	if v := w.log.deletes[op.UID]; v != nil {
		return v.Revision
	}
	return 0
}

// allows says at which versions of its key an answer is true; nil if it says nothing.
func (w *witness) allows(op *history.Op) func(v *Version) bool {
	switch {
	case op.Outcome == history.Refused || op.Outcome == history.Unknown:
		return nil
	case op.Level == history.Exact:
		return nil // of a moment that the client chose: Lists replays it
	case op.Outcome == history.OK && op.Kind == history.Delete && w.point(op) == 0:
		return nil // lost: Writes says so
	case op.Outcome == history.OK && op.Kind == history.Get:
		return func(v *Version) bool { return v.live() && v.Revision == op.Revision && v.Value == op.Value }
	case op.Outcome == history.OK:
		return func(*Version) bool { return true } // exactly at point
	case op.Outcome == history.Absent:
		return func(v *Version) bool { return !v.live() }
	case op.Outcome == history.Exists:
		return (*Version).live
	default: // Conflict
		return func(v *Version) bool { return v.live() && v.Revision != op.Expect }
	}
}

func (w *witness) judge(op *history.Op, allowed func(*Version) bool, r *Result) {
	lower, shared := w.lower(op)
	upper := w.before(op.Return)
	at := w.earliest(op, lower, allowed)
	if at >= upper {
		r.violate("%s: not true at any revision from %d to before %d", show(op), lower, upper)
		return
	}
	shared.push(op.Return, at)
}

// lower is the oldest revision at which the answer may have been true, and
// where to note what it shows.
func (w *witness) lower(op *history.Op) (uint64, *horizon) {
	if op.Level == history.Newest {
		return max(w.log.Start, w.open.until(op.Call)), &w.open
	}
	own := w.ofReplica[op.Replica]
	if own == nil {
		own = &horizon{}
		w.ofReplica[op.Replica] = own
	}
	return max(w.log.Start, op.Minimum, own.until(op.Call)), own
}

// earliest is the first revision from lower on at which the answer is true.
func (w *witness) earliest(op *history.Op, lower uint64, allowed func(*Version) bool) uint64 {
	if op.Outcome == history.OK && op.Kind != history.Get {
		if at := w.point(op); at >= lower {
			return at
		}
		return math.MaxUint64
	}
	versions := w.log.keys[op.Key]
	for i := w.log.at(op.Key, lower); i < len(versions); i++ {
		var version *Version
		if i >= 0 {
			version = versions[i]
		}
		if allowed(version) {
			if version == nil {
				return lower
			}
			return max(lower, version.Revision)
		}
	}
	return math.MaxUint64
}

// A horizon is the newest revision that was shown before a time. Times only grow.
type horizon struct {
	shown   uint64
	pending returns
}

func (h *horizon) push(at int64, revision uint64) { heap.Push(&h.pending, shown{at, revision}) }

func (h *horizon) until(call int64) uint64 {
	for len(h.pending) > 0 && h.pending[0].at < call {
		h.shown = max(h.shown, heap.Pop(&h.pending).(shown).revision)
	}
	return h.shown
}

type shown struct {
	at       int64
	revision uint64
}

// returns is a heap of answers by their time.
type returns []shown

func (q returns) Len() int           { return len(q) }
func (q returns) Less(i, j int) bool { return q[i].at < q[j].at }
func (q returns) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *returns) Push(x any)        { *q = append(*q, x.(shown)) }
func (q *returns) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
