package check

import (
	"slices"
	"sort"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// A Version is a key's content from Revision on.
type Version struct {
	history.Event
	// Before is the key's revision until then; zero if there was no such object.
	Before uint64
}

// live says whether there is an object at this version.
func (v *Version) live() bool { return v != nil && v.Type != history.Deleted }

// A Log is every write of an epoch by its revision, as watchers saw it.
type Log struct {
	Start, End uint64
	Versions   []*Version // by revision
	keys       map[string][]*Version
	byID       map[string][]*Version // of creates and updates, by the ID they wrote
	deletes    map[string]*Version   // by uid
}

// ReadLog joins what the streams without a selector saw. They must agree on
// every revision, together leave none out, and tell a life of each object:
// added, modified, deleted, under a uid that never comes back.
func ReadLog(e *history.Epoch) (*Log, Result) {
	r := Result{Checker: "log: one history on all replicas"}
	log := &Log{Start: e.Start, End: e.End, keys: map[string][]*Version{}, byID: map[string][]*Version{}, deletes: map[string]*Version{}}
	seen := map[uint64]*Version{}
	for _, stream := range e.Streams {
		if stream.Selector == "" {
			gather(stream, seen, e.End, &r)
		}
	}
	for _, version := range seen {
		log.Versions = append(log.Versions, version)
	}
	sort.Slice(log.Versions, func(i, j int) bool { return log.Versions[i].Revision < log.Versions[j].Revision })
	coverage(e, &r)
	for _, version := range log.Versions {
		log.add(version, &r)
	}
	r.Checked = len(log.Versions)
	return log, r
}

// gather takes the stream's events up to end into seen.
func gather(stream *history.Stream, seen map[uint64]*Version, end uint64, r *Result) {
	for _, event := range stream.Events {
		if !isChange(event.Type) || event.Revision > end {
			continue
		}
		other := seen[event.Revision]
		if other == nil {
			seen[event.Revision] = &Version{Event: event}
		} else if other.Type != event.Type || other.Item != event.Item {
			r.violate("revision %d: server-%d says %s %+v, server-%d says %s %+v",
				event.Revision, other.Replica+1, other.Type, other.Item, event.Replica+1, event.Type, event.Item)
		}
	}
}

func isChange(t history.EventType) bool {
	return t == history.Added || t == history.Modified || t == history.Deleted
}

// span is the revisions (after, upTo] that a stream has seen without a break.
type span struct{ after, upTo uint64 }

// coverage makes sure that somebody watched all the time: what nobody saw cannot
// be judged, and a history that cannot be judged is not a good one.
func coverage(e *history.Epoch, r *Result) {
	var spans []span
	for _, stream := range e.Streams {
		if stream.Selector == "" {
			spans = append(spans, spansOf(stream)...)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(int64(a.after) - int64(b.after)) })
	reached := e.Start
	for _, s := range spans {
		if s.after > reached {
			break
		}
		reached = max(reached, s.upTo)
	}
	if reached < e.End {
		r.violate("no watcher saw what follows revision %d; the epoch ended at %d", reached, e.End)
	}
}

func spansOf(stream *history.Stream) []span {
	var spans []span
	open := false
	for _, event := range stream.Events {
		switch {
		case event.Type == history.Expired:
			open = false
		case !open:
			spans = append(spans, span{event.Revision, event.Revision})
			open = true
		default:
			last := &spans[len(spans)-1]
			last.upTo = max(last.upTo, event.Revision)
		}
	}
	return spans
}

func (l *Log) add(v *Version, r *Result) {
	before := l.last(v.Key)
	if before.live() {
		v.Before = before.Revision
	}
	switch {
	case v.Type == history.Added && before.live():
		r.violate("revision %d: %s was added, but it was there since %d", v.Revision, v.Key, before.Revision)
	case v.Type == history.Added && l.hadUID(v.Key, v.UID):
		r.violate("revision %d: %s came back with the uid %s", v.Revision, v.Key, v.UID)
	case v.Type != history.Added && !before.live():
		r.violate("revision %d: %s of %s, which was not there", v.Revision, v.Type, v.Key)
	case v.Type != history.Added && before.UID != v.UID:
		r.violate("revision %d: the uid of %s changed from %s to %s", v.Revision, v.Key, before.UID, v.UID)
	}
	l.keys[v.Key] = append(l.keys[v.Key], v)
	if v.Type == history.Deleted {
		l.deletes[v.UID] = v
		return
	}
	l.byID[v.Value] = append(l.byID[v.Value], v)
}

func (l *Log) last(key string) *Version {
	versions := l.keys[key]
	if len(versions) == 0 {
		return nil
	}
	return versions[len(versions)-1]
}

func (l *Log) hadUID(key, uid string) bool {
	return slices.ContainsFunc(l.keys[key], func(v *Version) bool { return v.UID == uid })
}

// at is the index in keys[key] of the version that holds at a revision; -1 before the first.
func (l *Log) at(key string, revision uint64) int {
	versions := l.keys[key]
	return sort.Search(len(versions), func(i int) bool { return versions[i].Revision > revision }) - 1
}
