package watch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// put returns an event with a value of the given size.
func put(revision uint64, key string, valueBytes int) watch.Event {
	rec := &record.Record{Key: key, Value: make([]byte, valueBytes), ModRevision: revision}
	return watch.Event{Type: watch.Put, Revision: revision, Key: key, Record: rec}
}

func puts(from, to uint64, key string) []watch.Event {
	var events []watch.Event
	for rev := from; rev <= to; rev++ {
		events = append(events, put(rev, key, 0))
	}
	return events
}

func revisions(events []watch.Event) []uint64 {
	var revs []uint64
	for _, e := range events {
		revs = append(revs, e.Revision)
	}
	return revs
}

func mustWatch(t testing.TB, r *watch.Ring, prefix string, after uint64) *watch.Watcher {
	t.Helper()
	w, err := r.Watch(prefix, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// wantNext expects exactly these revisions from one call of Next.
func wantNext(t testing.TB, w *watch.Watcher, want ...uint64) {
	t.Helper()
	events, err := w.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, revisions(events)); diff != "" {
		t.Fatalf("revisions: %s", diff)
	}
}

func TestPrefixes(t *testing.T) {
	ring := watch.NewRing(0)
	ring.Append([]watch.Event{
		put(1, "nodes/a", 0), put(2, "pods/x/a", 0), put(3, "pods/x/ab", 0), put(4, "pods/y/a", 0), put(5, "podsets/x/a", 0), put(6, "plain", 0),
	})
	cases := []struct {
		prefix string
		want   []uint64
	}{
		{"", []uint64{1, 2, 3, 4, 5, 6}},
		{"pods/", []uint64{2, 3, 4}},
		{"pods/x/", []uint64{2, 3}},
		{"pods/x/a", []uint64{2, 3}},
		{"pods/x/ab", []uint64{3}},
		{"pods", []uint64{2, 3, 4, 5}},
		{"pl", []uint64{6}},
	}
	for _, c := range cases {
		t.Run(c.prefix, func(t *testing.T) {
			w := mustWatch(t, ring, c.prefix, 0)
			wantNext(t, w, c.want...)
			if got := w.Progress(); got != 6 {
				t.Errorf("progress %d, want 6", got)
			}
		})
	}
}

// TestKeysThatBeginWithASlash, as those of all objects do, lie in the same folders before and after the watch began.
func TestKeysThatBeginWithASlash(t *testing.T) {
	ring := watch.NewRing(0)
	ring.Append([]watch.Event{put(1, "/core/pods/x/a", 0)})
	all, pods, others := mustWatch(t, ring, "/", 0), mustWatch(t, ring, "/core/pods/", 0), mustWatch(t, ring, "/apps/", 0)
	ring.Append([]watch.Event{put(2, "/core/pods/x/b", 0), put(3, "/apps/x/c", 0)})
	wantNext(t, all, 1, 2, 3)
	wantNext(t, pods, 1, 2)
	wantNext(t, others, 3)
}

func TestStart(t *testing.T) {
	ring := watch.NewRing(10 * 200)
	ring.Append(puts(1, 100, "a"))
	compacted, last := ring.Bounds()
	if last != 100 || compacted < 80 || compacted >= 100 {
		t.Fatalf("bounds %d, %d", compacted, last)
	}
	if _, err := ring.Watch("", compacted-1); !errors.Is(err, watch.ErrCompacted) {
		t.Errorf("start before the ring: %v", err)
	}
	events, err := mustWatch(t, ring, "", compacted).Next(t.Context())
	if err != nil || len(events) != int(last-compacted) || events[0].Revision != compacted+1 {
		t.Errorf("start at the edge: %d events, %v", len(events), err)
	}
	future := mustWatch(t, ring, "", 102)
	ring.Append(puts(101, 104, "a"))
	wantNext(t, future, 103, 104)
}

func TestOvertaken(t *testing.T) {
	ring := watch.NewRing(10 * 200)
	busy, quiet := mustWatch(t, ring, "busy/", 0), mustWatch(t, ring, "quiet/", 0)
	sibling := mustWatch(t, ring, "busy/b", 0)
	ring.Append(puts(1, 1000, "busy/a"))
	for _, w := range []*watch.Watcher{busy, sibling} {
		if _, err := w.Next(t.Context()); !errors.Is(err, watch.ErrCompacted) {
			t.Errorf("overtaken watcher: %v", err)
		}
	}
	if got := busy.Progress(); got != 0 {
		t.Errorf("overtaken watcher claims progress to %d", got)
	}
	// Traffic elsewhere takes nothing from the quiet watcher.
	if got := quiet.Progress(); got != 1000 {
		t.Errorf("quiet watcher at %d", got)
	}
	ring.Append([]watch.Event{put(1001, "quiet/a", 0)})
	if got := quiet.Progress(); got != 1000 {
		t.Errorf("progress %d runs ahead of event 1001", got)
	}
	wantNext(t, quiet, 1001)
}

func TestNewestEventStaysHoweverLarge(t *testing.T) {
	ring := watch.NewRing(1000)
	w := mustWatch(t, ring, "", 0)
	ring.Append([]watch.Event{put(1, "a", 5000)})
	wantNext(t, w, 1)
	ring.Append([]watch.Event{put(2, "a", 10)})
	if compacted, _ := ring.Bounds(); compacted != 1 {
		t.Errorf("compacted %d, want 1", compacted)
	}
}

// TestARingIsFullToTheByte: what takes as much as the limit stays, and one more event evicts one, also after a Reset.
func TestARingIsFullToTheByte(t *testing.T) {
	one := put(1, "a", 10)
	ring := watch.NewRing(3 * one.Bytes())
	wantCompacted := func(want uint64) {
		t.Helper()
		if compacted, _ := ring.Bounds(); compacted != want {
			t.Errorf("compacted %d, want %d", compacted, want)
		}
	}
	for revision := range uint64(3) {
		ring.Append([]watch.Event{put(revision+1, "a", 10)})
	}
	wantCompacted(0)
	ring.Append([]watch.Event{put(4, "a", 10)})
	wantCompacted(1)
	ring.Reset(1, []watch.Event{put(2, "a", 10), put(3, "a", 10), put(4, "a", 10)}, 4)
	wantCompacted(1)
	ring.Append([]watch.Event{put(5, "a", 10)})
	wantCompacted(2)
}

func TestReset(t *testing.T) {
	history := puts(1, 20, "a/x")
	fresh := func(t *testing.T) (*watch.Ring, *watch.Watcher) {
		ring := watch.NewRing(0)
		ring.Append(history[:10])
		return ring, mustWatch(t, ring, "a/", 0)
	}
	t.Run("covered watcher goes on", func(t *testing.T) {
		ring, w := fresh(t)
		wantNext(t, w, revisions(history[:10])...)
		ring.Reset(10, history[10:], 20)
		wantNext(t, w, revisions(history[10:])...)
	})
	t.Run("watcher behind must list again", func(t *testing.T) {
		ring, w := fresh(t)
		ring.Reset(5, history[5:], 20)
		if _, err := w.Next(t.Context()); !errors.Is(err, watch.ErrCompacted) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("watcher of a quiet folder counts as up to date", func(t *testing.T) {
		ring, _ := fresh(t)
		quiet := mustWatch(t, ring, "b/", 3)
		ring.Reset(10, history[10:], 20)
		if got := quiet.Progress(); got != 20 {
			t.Errorf("progress %d", got)
		}
	})
	t.Run("back in time", func(t *testing.T) {
		ring, w := fresh(t)
		wantNext(t, w, revisions(history[:10])...)
		ring.Reset(0, history[:5], 5)
		if _, err := w.Next(t.Context()); !errors.Is(err, watch.ErrCompacted) {
			t.Errorf("got %v", err)
		}
		wantNext(t, mustWatch(t, ring, "a/", 4), 5)
	})
	t.Run("cut off", func(t *testing.T) {
		ring, w := fresh(t)
		quiet := mustWatch(t, ring, "b/", 10)
		ring.Reset(1000, nil, 1000)
		for _, w := range []*watch.Watcher{w, quiet} {
			if _, err := w.Next(t.Context()); !errors.Is(err, watch.ErrCompacted) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestResetKeepsTheLimit(t *testing.T) {
	ring := watch.NewRing(10 * 200)
	ring.Reset(0, puts(1, 100, "a"), 100)
	if compacted, last := ring.Bounds(); compacted < 80 || last != 100 {
		t.Errorf("bounds %d, %d", compacted, last)
	}
}

func TestGapInRevisionsPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("gap accepted")
		}
	}()
	watch.NewRing(0).Append([]watch.Event{put(2, "a", 0)})
}

func TestSinceAndTail(t *testing.T) {
	ring := watch.NewRing(0)
	ring.Append(puts(1, 9, "a"))
	events, err := ring.Since(6)
	if diff := cmp.Diff([]uint64{7, 8, 9}, revisions(events)); diff != "" || err != nil {
		t.Errorf("since: %v %s", err, diff)
	}
	one := events[0]
	if diff := cmp.Diff([]uint64{8, 9}, revisions(ring.Tail(2*one.Bytes()))); diff != "" {
		t.Errorf("tail: %s", diff)
	}
	if events, err := ring.Since(9); events != nil || err != nil {
		t.Errorf("since the end: %v, %v", events, err)
	}
	if diff := cmp.Diff(revisions(puts(1, 9, "a")), revisions(ring.Tail(1<<40))); diff != "" {
		t.Errorf("tail of all: %s", diff)
	}
}

// TestSinceTheEdge: all after the revision that was compacted last is there, and nobody is told that there is nothing before it.
func TestSinceTheEdge(t *testing.T) {
	ring := watch.NewRing(1) // the newest event alone stays
	ring.Append(puts(1, 9, "a"))
	events, err := ring.Since(8)
	if diff := cmp.Diff([]uint64{9}, revisions(events)); diff != "" || err != nil {
		t.Errorf("since the edge: %v %s", err, diff)
	}
	if events, err := ring.Since(7); !errors.Is(err, watch.ErrCompacted) || events != nil {
		t.Errorf("since before it: %v, %v", revisions(events), err)
	}
}

func TestAt(t *testing.T) {
	ring := watch.NewRing(3 * 200)
	ring.Append(puts(1, 9, "a"))
	compacted, _ := ring.Bounds()
	for revision := range uint64(12) {
		event, ok := ring.At(revision)
		if want := revision > compacted && revision <= 9; ok != want || ok && event.Revision != revision {
			t.Errorf("at %d: revision %d, %t; the ring begins after %d", revision, event.Revision, ok, compacted)
		}
	}
	if compacted == 0 {
		t.Error("nothing has left the ring")
	}
}

// TestWatchersSeeAFilterOfTheHistory is the promise of watches: ordered, unique,
// complete, progress never ahead, whatever is appended, evicted and replaced
// meanwhile; or else ErrCompacted.
func TestWatchersSeeAFilterOfTheHistory(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkHistory(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

type follower struct {
	*watch.Watcher
	prefix string
	seen   uint64 // the newest revision returned, or where it started
}

func checkHistory(t *testing.T, r *rand.Rand) {
	ring := watch.NewRing(int64(1000 + r.IntN(60_000)))
	var history []watch.Event
	var followers []*follower
	for range 400 {
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			next := uint64(len(history))
			var entry []watch.Event
			for range 1 + r.IntN(20) {
				next++
				entry = append(entry, put(next, fmt.Sprintf("%c/%c/%d", 'a'+r.IntN(3), 'x'+r.IntN(3), r.IntN(20)), r.IntN(200)))
			}
			ring.Append(entry)
			history = append(history, entry...)
		case 4:
			prefix := []string{"", "a/", "a/x/", "a/x/1", "b/y/", "c", "d/"}[r.IntN(7)]
			after := uint64(r.IntN(len(history) + 1))
			w, err := ring.Watch(prefix, after)
			if compacted, _ := ring.Bounds(); (err != nil) != (after < compacted) {
				t.Fatalf("watch after %d, compacted %d: %v", after, compacted, err)
			}
			if err == nil {
				followers = append(followers, &follower{w, prefix, after})
			}
		case 5:
			if compacted, last := ring.Bounds(); last > compacted && r.IntN(4) == 0 {
				start := compacted + r.Uint64N(last-compacted)
				ring.Reset(start, history[start:], last)
			}
		default:
			if len(followers) > 0 {
				i := r.IntN(len(followers))
				if !followers[i].step(t, ring, history) {
					followers[i].Close()
					followers = append(followers[:i], followers[i+1:]...)
				}
			}
		}
	}
}

// step reads once and compares; it reports false when the watcher has ended.
func (f *follower) step(t *testing.T, ring *watch.Ring, history []watch.Event) bool {
	want := filter(history[min(int(f.seen), len(history)):], f.prefix)
	progress := f.Progress()
	if len(want) > 0 && progress >= want[0] {
		t.Fatalf("progress %d with event %d not returned", progress, want[0])
	}
	if len(want) == 0 {
		return true
	}
	events, err := f.Next(t.Context())
	if err != nil {
		compacted, _ := ring.Bounds()
		if !errors.Is(err, watch.ErrCompacted) || compacted < f.seen {
			t.Fatalf("at %d, compacted %d: %v", f.seen, compacted, err)
		}
		return false
	}
	got := revisions(events)
	if len(want) > watch.MaxBatch {
		want = want[:watch.MaxBatch]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("prefix %q after %d: %s", f.prefix, f.seen, diff)
	}
	f.seen = got[len(got)-1]
	return true
}

func filter(history []watch.Event, prefix string) []uint64 {
	var revs []uint64
	for _, e := range history {
		if strings.HasPrefix(e.Key, prefix) {
			revs = append(revs, e.Revision)
		}
	}
	return revs
}
