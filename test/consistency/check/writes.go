package check

import (
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// Writes looks for every write in the log: an acknowledged one is there exactly once,
// at its revision; one of unknown outcome at most once; a refused one never; and
// nothing is there that nobody asked for, or over an object that had changed.
func Writes(e *history.Epoch, log *Log) Result {
	r := Result{Checker: "writes: none lost, none twice"}
	w := writes{log: log, asked: map[string]*history.Op{}, deleters: map[string][]*history.Op{}}
	for i := range e.Ops {
		if op := &e.Ops[i]; op.Writes() {
			r.Checked++
			w.put(op, &r)
		}
	}
	for _, version := range log.Versions {
		if version.Type == history.Deleted {
			w.deleted(version, &r)
		} else {
			w.written(version, &r)
		}
	}
	for uid, ops := range w.deleters {
		if log.deletes[uid] == nil {
			w.notDeleted(ops, &r)
		}
	}
	return r
}

type writes struct {
	log      *Log
	asked    map[string]*history.Op   // creates and updates by ID
	deleters map[string][]*history.Op // deletes by uid
}

func (w *writes) put(op *history.Op, r *Result) {
	if op.Kind == history.Delete {
		w.deleters[op.UID] = append(w.deleters[op.UID], op)
		return
	}
	w.asked[op.ID] = op
	found := w.log.byID[op.ID]
	switch {
	case op.Outcome == history.OK && len(found) == 0:
		r.violate("lost: %s", show(op))
	case len(found) > 1:
		r.violate("took effect %d times, at %d and %d: %s", len(found), found[0].Revision, found[1].Revision, show(op))
	case op.Outcome == history.OK && (found[0].Revision != op.Revision || found[0].UID != op.UID || found[0].Key != op.Key):
		r.violate("is in the log as %+v: %s", found[0].Event, show(op))
	case op.Outcome != history.OK && op.Outcome != history.Unknown && len(found) != 0:
		r.violate("took effect at %d although it was refused: %s", found[0].Revision, show(op))
	}
}

// written judges one create or update in the log.
func (w *writes) written(v *Version, r *Result) {
	op := w.asked[v.Value]
	switch {
	case op == nil:
		r.violate("revision %d of %s was written by nobody: %+v", v.Revision, v.Key, v.Event)
	case op.Kind == history.Create && v.Type != history.Added, op.Kind == history.Update && v.Type != history.Modified:
		r.violate("revision %d is %s: %s", v.Revision, v.Type, show(op))
	case op.Kind == history.Update && v.Before != op.Expect:
		r.violate("overwrote revision %d: %s", v.Before, show(op))
	}
}

// deleted judges one delete in the log: somebody asked for it, at that revision, and at most
// one of those who did was told that it was his.
func (w *writes) deleted(v *Version, r *Result) {
	possible, acknowledged := 0, 0
	for _, op := range w.deleters[v.UID] {
		switch {
		case op.Outcome == history.OK && op.Expect != v.Before:
			r.violate("deleted revision %d: %s", v.Before, show(op))
		case op.Outcome == history.OK:
			acknowledged++
		case op.Outcome == history.Unknown && op.Expect == v.Before:
			possible++
		}
	}
	if acknowledged > 1 {
		r.violate("%d deletes of %s uid %s were acknowledged", acknowledged, v.Key, v.UID)
	}
	if acknowledged+possible == 0 {
		r.violate("revision %d: %s uid %s was deleted by nobody who was told so", v.Revision, v.Key, v.UID)
	}
}

func (w *writes) notDeleted(ops []*history.Op, r *Result) {
	for _, op := range ops {
		if op.Outcome == history.OK {
			r.violate("lost: %s", show(op))
		}
	}
}

// CounterKey holds a number which every update raises by one.
const CounterKey = "counter"

// Counter follows the counter: each version is one more than the one before, so the
// last is the number of increments that took effect; no update was lost.
func Counter(e *history.Epoch, log *Log) Result {
	r := Result{Checker: "counter: no lost update"}
	acknowledged, unknown := 0, 0
	for i := range e.Ops {
		op := &e.Ops[i]
		if op.Key == CounterKey && op.Kind == history.Update {
			r.Checked++
			acknowledged += count(op.Outcome == history.OK)
			unknown += count(op.Outcome == history.Unknown)
		}
	}
	last := 0
	for i, v := range log.keys[CounterKey] {
		if i > 0 && v.Count != last+1 {
			r.violate("revision %d: the counter went from %d to %d", v.Revision, last, v.Count)
		}
		last = v.Count
	}
	if last < acknowledged || last > acknowledged+unknown {
		r.violate("the counter is %d after %d acknowledged increments and %d of unknown outcome", last, acknowledged, unknown)
	}
	return r
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
