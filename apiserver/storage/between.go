package storage

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

// Scope is of which objects Between tells.
type Scope struct {
	// Table is that of the one kind, nil: all kinds. Tables are all that there are; objects of others are not told.
	Table  *Table
	Tables map[schema.GroupResource]*Table
	// Namespace is the one that is asked for, "": all.
	Namespace string
	// Holds reports whether a change of a kind may be told.
	Holds func(of schema.GroupResource, namespace string, revision uint64) bool
	// Limit is how many objects are told, those that changed first.
	Limit int
}

// Period is what happened between two revisions.
type Period struct {
	Objects []Stretch
	// Left counts the objects beyond the limit.
	Left  int
	Holes []history.Hole
}

// Writer is who made changes.
type Writer struct {
	User         string `json:"user,omitempty"`
	FieldManager string `json:"manager,omitempty"`
}

// Stretch is what happened to one object in a period.
type Stretch struct {
	Resource        schema.GroupResource
	Namespace, Name string
	// Existed: it was there at the begin; Exists: it is there at the end; Replaced: that is another one of its name.
	Existed, Exists, Replaced bool
	// Changes counts the writes; Revision and Time are those of the last one.
	Changes  int
	Revision uint64
	Time     time.Time
	// Writers are the first ones; WritersMore: there are others.
	Writers     []Writer
	WritersMore bool
	// Before and After are the object at the begin and at the end, both nil unless it is the same one and they are known.
	Before, After resource.Object
	// Unknown says why they are not known.
	Unknown string
}

// OldestRevision is the first that history can be asked for.
func (s *Store) OldestRevision() uint64 {
	if s.history == nil {
		return 0
	}
	return s.history.Oldest()
}

// Between tells what happened after a revision up to another one.
func (s *Store) Between(ctx context.Context, of Scope, after, until uint64) (*Period, error) {
	if s.history == nil {
		return nil, expired("This server keeps no history.")
	}
	if _, err := s.waitRevision(ctx, until); err != nil {
		return nil, err
	}
	prefix := ""
	if of.Table != nil {
		prefix = of.Table.namespacePrefix(of.Namespace)
	}
	found, err := s.history.Between(ctx, history.Wanted{Prefix: prefix, After: after, Until: until, Limit: of.Limit, Holds: of.holds})
	if errors.Is(err, history.ErrTooOld) {
		return nil, expired("The time is before what history has." + reachOf(err))
	}
	if err != nil {
		return nil, unread(err)
	}
	p := &Period{Left: found.Left, Holes: found.Holes}
	for _, stretch := range found.Objects {
		gr, _ := resourceOf(stretch.Key)
		p.Objects = append(p.Objects, of.Tables[gr].stretchOf(gr, stretch))
	}
	return p, nil
}

func (of *Scope) holds(key string, revision uint64) bool {
	gr, ok := resourceOf(key)
	if !ok || of.Tables[gr] == nil {
		return false
	}
	namespace, _ := nameOf(key)
	return (of.Namespace == "" || of.Namespace == namespace) && of.Holds(gr, namespace, revision)
}

func (t *Table) stretchOf(gr schema.GroupResource, h *history.Stretch) Stretch {
	s := Stretch{
		Resource: gr, Existed: h.Existed, Exists: !h.Deleted, Replaced: h.Existed && !h.Deleted && h.FormerUID != h.UID,
		Changes: h.Changes, Revision: h.Revision, Time: h.Time, WritersMore: h.WritersMore,
	}
	s.Namespace, s.Name = nameOf(h.Key)
	for _, w := range h.Writers {
		s.Writers = append(s.Writers, Writer{w.User, w.FieldManager})
	}
	switch {
	case h.Lost:
		s.Unknown = "some of its changes are, or may be, in a part of history that is missing"
	case h.Purged && s.Existed && s.Exists && !s.Replaced:
		s.Unknown = purgedValue
	case h.Large && s.Existed && s.Exists && !s.Replaced:
		s.Unknown = "the objects of this answer are too large to be compared: ask for one kind, or a shorter time"
	case h.Before != nil && h.After != nil:
		s.Before, s.After, s.Unknown = t.decodeBoth(h.Before, h.After)
	}
	return s
}

func (t *Table) decodeBoth(one, other *record.Record) (before, after resource.Object, unknown string) {
	first, err := t.decode(one)
	if err != nil {
		return nil, nil, err.Error()
	}
	second, err := t.decode(other)
	if err != nil {
		return nil, nil, err.Error()
	}
	return first.object, second.object, ""
}
