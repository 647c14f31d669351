package state

import (
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// judge applies a command that was not seen before: fence, then form, then
// preconditions; only then does anything change.
func (s *State) judge(c *command.Command) command.Result {
	if c.Fence != 0 && c.Fence != s.entry.term {
		return s.refuse(command.FenceStale, fmt.Sprintf("fence %d, term %d", c.Fence, s.entry.term))
	}
	if err := c.Validate(); err != nil {
		return s.refuse(command.Rejected, err.Error())
	}
	if c.Ops[0].Kind.IsSystem() {
		return s.system(&c.Ops[0])
	}
	return s.transact(c)
}

func (s *State) refuse(code command.Code, message string) command.Result {
	return command.Result{Code: code, Revision: s.meta.revision, Message: message}
}

// transact judges every operation against the state before the command, then
// performs all of them.
func (s *State) transact(c *command.Command) command.Result {
	found := make([]*Record, len(c.Ops))
	for i := range c.Ops {
		found[i], _ = s.tree.Get(&Record{Key: c.Ops[i].Key})
		if why := unmet(&c.Ops[i], found[i]); why != "" {
			return s.fail(i, found[i], why)
		}
	}
	if i := repeatedWrite(c.Ops); i >= 0 {
		r := s.refuse(command.Rejected, "key written twice in one command")
		r.FailedOp = i
		return r
	}
	return s.perform(c, found)
}

// unmet says why the operation's precondition does not hold, "" if it does.
func unmet(op *command.Op, found *Record) string {
	switch {
	case op.Precondition == command.Any:
		return ""
	case op.Precondition == command.Absent:
		if found != nil {
			return "key is present"
		}
		return ""
	case found == nil:
		return "key is absent"
	case op.Precondition == command.AtRevision && found.ModRevision != op.Revision:
		return "key was changed"
	case op.UID != "" && found.UID != op.UID:
		return "key has another uid"
	}
	return ""
}

func (s *State) fail(op int, found *Record, why string) command.Result {
	r := s.refuse(command.PreconditionFailed, why)
	r.FailedOp = op
	if found != nil {
		r.Current = found.ModRevision
	}
	return r
}

// repeatedWrite returns the first operation that writes a key which an earlier
// one writes, or -1. Such a command has no one meaning.
func repeatedWrite(ops []command.Op) int {
	if len(ops) == 1 {
		return -1
	}
	written := make(map[string]struct{}, len(ops))
	for i := range ops {
		if ops[i].Kind == command.Check {
			continue
		}
		if _, ok := written[ops[i].Key]; ok {
			return i
		}
		written[ops[i].Key] = struct{}{}
	}
	return -1
}

func (s *State) perform(c *command.Command, found []*Record) command.Result {
	origin := &command.Origin{
		Actor: c.Actor, Cause: c.Cause, RequestID: c.RequestID,
		Index: s.meta.index, Term: s.entry.term, UnixNanos: s.entry.nanos,
	}
	var revisions []uint64
	if len(c.Ops) > 1 {
		revisions = make([]uint64, len(c.Ops))
	}
	for i := range c.Ops {
		if s.performOp(&c.Ops[i], found[i], origin) && revisions != nil {
			revisions[i] = s.meta.revision
		}
	}
	return command.Result{Code: command.OK, Revision: s.meta.revision, Revisions: revisions}
}

// performOp reports whether the operation changed an object, and so used up a
// revision.
func (s *State) performOp(op *command.Op, prev *Record, origin *command.Origin) bool {
	switch op.Kind {
	case command.Put:
		s.put(op, prev, origin)
		return true
	case command.Delete:
		if prev == nil {
			return false
		}
		s.remove(prev, origin)
		return true
	}
	return false
}

func (s *State) put(op *command.Op, prev *Record, origin *command.Origin) {
	s.meta.revision++
	// The value is copied: the entry's bytes belong to the log, and would stay in
	// memory as long as the smallest object in them. An empty one becomes nil, as
	// it is after a restore.
	rec := &Record{
		Key: op.Key, UID: op.UID, Value: append([]byte(nil), op.Value...),
		CreateRevision: s.meta.revision, ModRevision: s.meta.revision,
	}
	if prev != nil {
		rec.Key, rec.CreateRevision = prev.Key, prev.CreateRevision
		s.digest = s.digest.Minus(prev.Digest())
		s.bytes -= weight(prev)
	}
	rec.Seal()
	s.digest = s.digest.Plus(rec.Digest())
	s.bytes += weight(rec)
	s.tree.ReplaceOrInsert(rec)
	s.emit(watch.Event{Type: watch.Put, Key: rec.Key, Record: rec, Prev: prev, Origin: origin})
}

func (s *State) remove(prev *Record, origin *command.Origin) {
	s.meta.revision++
	s.digest = s.digest.Minus(prev.Digest())
	s.bytes -= weight(prev)
	if _, ok := s.tree.Delete(prev); !ok {
		panic("state: record to delete is not in the tree: " + prev.Key)
	}
	s.emit(watch.Event{Type: watch.Delete, Key: prev.Key, Prev: prev, Origin: origin})
}

func (s *State) emit(e watch.Event) {
	e.Revision = s.meta.revision
	s.entry.events = append(s.entry.events, e)
	s.entry.changed = true
}
