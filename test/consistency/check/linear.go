package check

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// linearTimeout bounds the search in one key's history. With at most 10 clients and
// 20,000 operations on a key it takes less than a second.
const linearTimeout = 2 * time.Minute

// Linear asks porcupine whether the operations on each key are linearizable. Only the
// answers count here, not the order of revisions. Of the log it takes one thing:
// whether a write of unknown outcome took effect, and by when that was seen.
func Linear(e *history.Epoch, log *Log) Result {
	r := Result{Checker: "porcupine: each key is linearizable"}
	for key, ops := range byKey(e) {
		operations := settle(ops, log)
		r.Checked += len(operations)
		switch porcupine.CheckOperationsTimeout(object, operations, linearTimeout) {
		case porcupine.Illegal:
			r.violate("%s: no order explains its %d operations", key, len(operations))
		case porcupine.Unknown:
			r.violate("%s: not decided within %v for %d operations", key, linearTimeout, len(operations))
		}
	}
	return r
}

func byKey(e *history.Epoch) map[string][]*history.Op {
	keys := map[string][]*history.Op{}
	for i := range e.Ops {
		op := &e.Ops[i]
		if op.Key != "" && op.Level == history.Newest && op.Outcome != history.Refused {
			keys[op.Key] = append(keys[op.Key], op)
		}
	}
	return keys
}

// settle turns one key's operations into porcupine's.
func settle(ops []*history.Op, log *Log) []porcupine.Operation {
	deleters := firstDeleters(ops, log)
	var operations []porcupine.Operation
	for _, op := range ops {
		answer := *op
		if op.Outcome == history.Unknown {
			if !tookEffect(&answer, log, deleters) {
				continue
			}
			answer.Outcome, answer.Return = history.OK, seen(&answer, ops)
		}
		operations = append(operations, porcupine.Operation{ClientId: op.Client, Input: answer, Call: op.Call, Return: answer.Return})
	}
	return operations
}

// tookEffect asks the log, and fills in the revision.
func tookEffect(op *history.Op, log *Log, deleters map[string]*history.Op) bool {
	if !op.Writes() {
		return false
	}
	if op.Kind == history.Delete {
		first := deleters[op.UID]
		return first != nil && first.ID == op.ID
	}
	found := log.byID[op.ID]
	if len(found) == 0 {
		return false
	}
	op.Revision = found[0].Revision
	return true
}

// firstDeleters finds for each deleted object that nobody was told to have deleted the first of those
// who may have: if another one was it, then the first could have been it as well.
func firstDeleters(ops []*history.Op, log *Log) map[string]*history.Op {
	first := map[string]*history.Op{}
	for _, op := range ops {
		v := log.deletes[op.UID]
		if op.Kind != history.Delete || v == nil || v.Before != op.Expect {
			continue
		}
		known := first[op.UID]
		if op.Outcome == history.OK || op.Outcome == history.Unknown &&
			(known == nil || known.Outcome != history.OK && op.Call < known.Call) {
			first[op.UID] = op
		}
	}
	return first
}

// seen is the first return of an answer that shows the write or a later one.
func seen(write *history.Op, ops []*history.Op) int64 {
	at := int64(math.MaxInt64)
	for _, op := range ops {
		if write.Revision != 0 && op.Outcome == history.OK && op.Revision >= write.Revision {
			at = min(at, op.Return)
		}
	}
	return max(at, write.Call)
}

// content is the model's state: what is under one key.
type content struct {
	live     bool
	revision uint64 // the last, also of what was deleted
	value    string
}

// object is the model of one key.
var object = porcupine.Model{
	Init: func() any { return content{} },
	Step: func(state, input, _ any) (bool, any) {
		op := input.(history.Op)
		return step(state.(content), &op)
	},
}

func step(now content, op *history.Op) (bool, any) {
	switch op.Outcome {
	case history.Absent:
		return !now.live, now
	case history.Exists:
		return now.live, now
	case history.Conflict:
		return now.live && now.revision != op.Expect, now
	}
	switch op.Kind {
	case history.Get:
		return now.live && now.revision == op.Revision && now.value == op.Value, now
	case history.Create:
		return !now.live && op.Revision > now.revision, content{true, op.Revision, op.ID}
	case history.Update:
		return now.live && now.revision == op.Expect && op.Revision > now.revision, content{true, op.Revision, op.ID}
	default: // Delete
		return now.live && now.revision == op.Expect, content{false, now.revision, ""}
	}
}
