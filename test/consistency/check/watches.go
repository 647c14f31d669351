package check

import (
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// Watches compares each stream with the log: between two revisions it saw, it saw every
// change that its selector wants, once, in order, with the right type; a stream that
// went on at another replica went on where it was; and no bookmark was ahead of a change that came later.
func Watches(e *history.Epoch, log *Log) Result {
	r := Result{Checker: "watches: ordered, complete, resumable"}
	for _, stream := range e.Streams {
		reader := &reader{stream: stream, expect: wanted(log, stream.Selector), r: &r}
		for _, event := range stream.Events {
			if event.Revision > log.End {
				break // nobody joined what follows
			}
			r.Checked++
			reader.read(event)
		}
	}
	return r
}

// wanted is the log as a stream with a selector has to show it: an object
// that begins to match is added, one that ceases to match is deleted.
func wanted(log *Log, selector string) []history.Event {
	var events []history.Event
	side := map[string]string{} // of live objects
	for _, v := range log.Versions {
		old, was := side[v.Key]
		before := was && (selector == "" || old == selector)
		after := v.live() && (selector == "" || v.Side == selector)
		event := v.Event
		switch {
		case before && after:
			event.Type = history.Modified
		case after:
			event.Type = history.Added
		case before:
			event.Type = history.Deleted
		}
		if before || after {
			events = append(events, event)
		}
		if side[v.Key] = v.Side; !v.live() {
			delete(side, v.Key)
		}
	}
	return events
}

type reader struct {
	stream *history.Stream
	expect []history.Event // the whole log; next is the first not yet due
	next   int
	seen   uint64
	r      *Result
}

func (s *reader) read(event history.Event) {
	switch event.Type {
	case history.Expired:
		s.seen = 0
	case history.Started:
		s.start(event)
	case history.Bookmark:
		s.bookmark(event)
	default:
		s.change(event)
	}
}

func (s *reader) start(event history.Event) {
	if s.seen != 0 && event.Revision != s.seen {
		s.violate(event, "is resumed elsewhere than at %d", s.seen)
	}
	for s.next < len(s.expect) && s.expect[s.next].Revision <= event.Revision {
		s.next++ // only where the stream begins, or begins anew
	}
	s.seen = event.Revision
}

func (s *reader) bookmark(event history.Event) {
	switch {
	case event.Revision < s.seen:
		s.violate(event, "goes back from %d", s.seen)
	case s.next < len(s.expect) && s.expect[s.next].Revision <= event.Revision:
		s.violate(event, "is ahead of %s %+v, which had not come", s.expect[s.next].Type, s.expect[s.next].Item)
	}
	s.seen = max(s.seen, event.Revision)
}

func (s *reader) change(event history.Event) {
	if event.Revision <= s.seen {
		s.violate(event, "came again or late, after %d", s.seen)
		return
	}
	for s.next < len(s.expect) && s.expect[s.next].Revision < event.Revision {
		s.violate(event, "came, but not %s %+v before it", s.expect[s.next].Type, s.expect[s.next].Item)
		s.next++
	}
	s.seen = event.Revision
	if s.next == len(s.expect) || s.expect[s.next].Revision != event.Revision {
		s.violate(event, "is not in the log, or not for this selector")
		return
	}
	want := s.expect[s.next]
	s.next++
	if !same(want, event) {
		s.violate(event, "should be %s %+v", want.Type, want.Item)
	}
}

// same compares two events. A deleted object shows its last content, which
// under a selector is that before it ceased to match: only its name and uid are told.
func same(want, got history.Event) bool {
	if got.Type == history.Deleted {
		return want.Type == got.Type && want.Key == got.Key && want.UID == got.UID
	}
	return want.Type == got.Type && want.Item == got.Item
}

func (s *reader) violate(event history.Event, format string, args ...any) {
	s.r.violate("stream %s (selector %q) at server-%d: %s %+v "+format,
		append([]any{s.stream.Name, s.stream.Selector, event.Replica + 1, event.Type, event.Item}, args...)...)
}
