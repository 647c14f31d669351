package check

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// A story is a history under construction: a store that does everything right, at
// one time step for each call and return.
type story struct {
	epoch    history.Epoch
	now      int64
	revision uint64
	live     map[string]history.Item
}

// tell is a good history: two keys, a counter, a delete and a create again, reads of
// all levels, a list in pages, and three streams, one of which has moved.
func tell() *story {
	s := &story{revision: 10, live: map[string]history.Item{}}
	s.epoch = history.Epoch{Namespace: "n", Start: 10}
	for i, selector := range []string{"", "", "a"} {
		stream := &history.Stream{Name: fmt.Sprint(i), Selector: selector}
		stream.Events = []history.Event{{Type: history.Started, Item: history.Item{Revision: 10}}}
		s.epoch.Streams = append(s.epoch.Streams, stream)
	}
	s.write(history.Create, "counter", "", "w0")
	s.write(history.Create, "k0", "a", "w1")
	s.get("k0")
	s.write(history.Create, "k1", "b", "w2")
	s.write(history.Update, "k0", "b", "w3") // leaves the selector
	s.list("")
	s.write(history.Update, "k1", "a", "w4") // enters it
	s.write(history.Update, "counter", "", "w5")
	s.write(history.Update, "counter", "", "w6")
	s.write(history.Delete, "k0", "", "w7")
	s.get("k0")
	s.mark(1)
	s.list("a")
	s.write(history.Create, "k0", "a", "w8")
	s.get("k0")
	s.write(history.Update, "k0", "a", "w9")
	s.get("k0")
	s.epoch.End = s.revision
	return s
}

func (s *story) tick() int64 { s.now += 10; return s.now }

func (s *story) op(op history.Op) {
	op.Call, op.Return, op.Client = s.tick(), s.tick(), 1
	s.epoch.Ops = append(s.epoch.Ops, op)
}

func (s *story) write(kind history.Kind, key, side, id string) {
	old, was := s.live[key]
	s.revision++
	item := history.Item{Key: key, UID: old.UID, Revision: s.revision, Value: id, Side: side, Count: old.Count}
	event := history.Event{Type: history.Modified}
	op := history.Op{Kind: kind, Key: key, ID: id, Expect: old.Revision, Revision: s.revision, Outcome: history.OK}
	switch kind {
	case history.Create:
		event.Type, item.UID = history.Added, "uid-"+id
	case history.Update:
		item.Count++
	case history.Delete:
		event.Type, op.Revision = history.Deleted, 0
		item.Value, item.Side = old.Value, old.Side
	}
	op.UID, event.Item, s.live[key] = item.UID, item, item
	if kind == history.Delete {
		delete(s.live, key)
	}
	s.op(op)
	for _, stream := range s.epoch.Streams {
		s.show(stream, event, was && old.Side == "a", kind != history.Delete && side == "a")
	}
}

func (s *story) show(stream *history.Stream, event history.Event, before, after bool) {
	if stream.Selector != "" {
		switch {
		case !before && !after:
			return
		case !before:
			event.Type = history.Added
		case !after:
			event.Type = history.Deleted
		}
	}
	stream.Events = append(stream.Events, event)
}

func (s *story) get(key string) {
	item, live := s.live[key]
	op := history.Op{Kind: history.Get, Key: key, ID: fmt.Sprint("r", s.now), Outcome: history.Absent}
	if live {
		op.Outcome, op.Revision, op.Value, op.UID = history.OK, item.Revision, item.Value, item.UID
	}
	s.op(op)
}

func (s *story) list(selector string) {
	items := listed(s.live, selector)
	s.op(history.Op{Kind: history.List, ID: fmt.Sprint("l", s.now), Revision: s.revision, Outcome: history.OK, Items: items, Selector: selector, Pages: 2})
}

// mark moves a stream to the next replica, with a bookmark before.
func (s *story) mark(stream int) {
	for _, kind := range []history.EventType{history.Bookmark, history.Started} {
		s.epoch.Streams[stream].Events = append(s.epoch.Streams[stream].Events,
			history.Event{Type: kind, Replica: 1, Item: history.Item{Revision: s.revision}})
	}
}

// find returns the operation with an ID.
func (s *story) find(id string) *history.Op {
	for i := range s.epoch.Ops {
		if s.epoch.Ops[i].ID == id {
			return &s.epoch.Ops[i]
		}
	}
	panic("no operation " + id)
}

// last returns the last operation.
func (s *story) last() *history.Op { return &s.epoch.Ops[len(s.epoch.Ops)-1] }

func (s *story) drop(stream, event int) {
	events := s.epoch.Streams[stream].Events
	s.epoch.Streams[stream].Events = append(events[:event:event], events[event+1:]...)
}

// forget takes a revision out of all streams.
func (s *story) forget(revision uint64) {
	for _, stream := range s.epoch.Streams {
		for i := len(stream.Events) - 1; i >= 0; i-- {
			if stream.Events[i].Revision == revision && isChange(stream.Events[i].Type) {
				stream.Events = append(stream.Events[:i:i], stream.Events[i+1:]...)
			}
		}
	}
}

// found are the first words of the checkers that object.
func found(e *history.Epoch) string {
	var names []string
	for _, result := range All(e) {
		if result.Bad > 0 {
			name, _, _ := strings.Cut(result.Checker, ":")
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func TestGoodHistoryPasses(t *testing.T) {
	s := tell()
	for _, result := range All(&s.epoch) {
		if result.Bad != 0 || result.Checked == 0 {
			t.Errorf("%+v", result)
		}
	}
}

// TestPlantedViolations plants one fault of the store in the good history.
func TestPlantedViolations(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(s *story)
		want  string
	}{
		"acknowledged write lost": {func(s *story) { s.forget(s.find("w4").Revision) }, "writes lists"},
		"refused write took effect": {func(s *story) { s.find("w4").Outcome = history.Refused },
			"writes"},
		"unknown write took effect": {func(s *story) { s.find("w4").Outcome, s.find("w4").Revision = history.Unknown, 0 }, ""},
		"unknown write did not": {func(s *story) {
			s.op(history.Op{Kind: history.Update, Key: "k1", ID: "never", Expect: 3, Outcome: history.Unknown})
		}, ""},
		"unknown write took effect twice": {func(s *story) {
			s.find("w4").Outcome = history.Unknown
			s.write(history.Update, "k1", "a", "w4")
			s.find("w4").Outcome = history.Unknown
			s.epoch.Ops = s.epoch.Ops[:len(s.epoch.Ops)-1]
			s.epoch.End = s.revision
		}, "writes"},
		"acknowledged at another revision": {func(s *story) { s.find("w9").Revision++ }, "writes porcupine"},
		"update over a changed object":     {func(s *story) { s.find("w3").Expect-- }, "writes porcupine"},
		"written by nobody":                {func(s *story) { s.find("w3").ID = "other" }, "writes"},
		"two deletes of one object acknowledged": {func(s *story) {
			again := *s.find("w7")
			again.ID = "again"
			s.op(again)
		}, "writes witness porcupine"},
		"acknowledged delete lost": {func(s *story) {
			s.op(history.Op{Kind: history.Delete, Key: "k1", ID: "lost", UID: s.live["k1"].UID, Expect: s.live["k1"].Revision, Outcome: history.OK})
		}, "writes"},
		"deleted by nobody":         {func(s *story) { s.find("w7").Outcome = history.Refused }, "writes porcupine"},
		"lost update":               {func(s *story) { s.epoch.Streams[0].Events[7].Count, s.epoch.Streams[1].Events[7].Count = 1, 1 }, "counter"},
		"stale read":                {func(s *story) { s.last().Revision, s.last().Value = s.find("w8").Revision, "w8" }, "witness porcupine"},
		"stale absence":             {func(s *story) { s.last().Outcome = history.Absent }, "witness porcupine"},
		"read of the future":        {func(s *story) { s.epoch.Ops[2].Revision, s.epoch.Ops[2].Value = s.find("w3").Revision, "w3" }, "witness porcupine"},
		"value of another revision": {func(s *story) { s.last().Value = "w8" }, "witness porcupine"},
		"conflict with what is there": {func(s *story) {
			s.op(history.Op{Kind: history.Update, Key: "k1", ID: "c", Expect: s.live["k1"].Revision, Outcome: history.Conflict})
		}, "witness porcupine"},
		"exists after a delete": {func(s *story) {
			s.write(history.Delete, "k1", "", "d")
			s.epoch.End = s.revision
			s.op(history.Op{Kind: history.Create, Key: "k1", ID: "c", Outcome: history.Exists})
		}, "witness porcupine"},
		"stale read is allowed at rv=0": {func(s *story) {
			s.last().Revision, s.last().Value, s.last().Level = s.find("w8").Revision, "w8", history.Any
		}, ""},
		"rv=0 goes back": {func(s *story) {
			s.last().Level = history.Any
			s.op(history.Op{Kind: history.Get, Key: "k0", ID: "back", Outcome: history.OK, Level: history.Any, Revision: s.find("w8").Revision, Value: "w8"})
		}, "witness"},
		"rv=N is older than N": {func(s *story) {
			s.op(history.Op{Kind: history.Get, Key: "k0", ID: "old", Outcome: history.OK, Level: history.AtLeast,
				Minimum: s.revision, Revision: s.find("w8").Revision, Value: "w8"})
		}, "witness"},
		"stale list": {func(s *story) { s.op(*s.find("l100")); s.last().ID = "l" }, "witness"},
		"list of the past": {func(s *story) {
			s.op(*s.find("l100"))
			s.last().ID, s.last().Level = "past", history.Exact
		}, ""},
		"list of another moment": {func(s *story) {
			s.op(*s.find("l100"))
			s.last().ID, s.last().Level, s.last().Revision = "past", history.Exact, s.revision
		}, "lists"},
		"list lacks an object":            {func(s *story) { s.find("l100").Items = s.find("l100").Items[1:] }, "lists"},
		"list of two cuts":                {func(s *story) { s.find("l100").Items[1].Value = "w1" }, "lists"},
		"event missed":                    {func(s *story) { s.drop(1, 4) }, "watches"},
		"event missed under a selector":   {func(s *story) { s.drop(2, 2) }, "watches"},
		"event missed after the last one": {func(s *story) { s.drop(0, len(s.epoch.Streams[0].Events)-1) }, ""},
		"event repeated": {func(s *story) {
			events := s.epoch.Streams[1].Events
			s.epoch.Streams[1].Events = append(events, events[len(events)-1])
		}, "watches"},
		"events swapped": {func(s *story) {
			events := s.epoch.Streams[1].Events
			events[2], events[3] = events[3], events[2]
		}, "watches"},
		"replicas differ":             {func(s *story) { s.epoch.Streams[1].Events[4].Value = "w1" }, "log watches"},
		"wrong type under a selector": {func(s *story) { s.epoch.Streams[2].Events[2].Type = history.Modified }, "watches"},
		"bookmark ahead": {func(s *story) {
			events := s.epoch.Streams[1].Events
			events[4], events[9] = events[9], events[4]
			s.drop(1, 10)
			events[4].Revision = 15
		}, "watches"},
		"resumed too late": {func(s *story) {
			s.epoch.Streams[1].Events[10].Revision++
			s.drop(1, 11)
		}, "watches"},
		"nobody watched": {func(s *story) {
			for _, stream := range s.epoch.Streams {
				stream.Events[0].Revision++
			}
		}, "log watches"},
		"resurrected": {func(s *story) {
			for i := range 2 {
				for j := range s.epoch.Streams[i].Events {
					if event := &s.epoch.Streams[i].Events[j]; event.Value == "w8" {
						event.UID = "uid-w1"
					}
				}
			}
		}, "log writes watches"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell()
			c.plant(s)
			if got := found(&s.epoch); got != c.want {
				t.Errorf("found by %q, want %q", got, c.want)
				for _, result := range All(&s.epoch) {
					t.Log(result)
				}
			}
		})
	}
}

func TestHistoryIsKept(t *testing.T) {
	s := tell()
	path := filepath.Join(t.TempDir(), "epoch.jsonl")
	if err := s.epoch.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := history.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&s.epoch, got); diff != "" {
		t.Error(diff)
	}
}
