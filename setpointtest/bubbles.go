package setpointtest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// lookInterval is how often bubbles are looked at, in real time.
	lookInterval = time.Second
	// acceptLooks is at how many looks in a row nothing may have moved in a bubble in which somebody waits for connections,
	// answerLooks the same if somebody waits for an answer, which may come.
	acceptLooks = 3
	answerLooks = 20
	// namedGoroutines is how many a failure names.
	namedGoroutines = 10
)

// bubbles are those in which a cluster runs. Their time stands still while one of their goroutines waits for the network, and
// with it each limit that the test has: so they are watched from outside, by the clock of the process.
var bubbles bubbleWatch

type bubbleWatch struct {
	once  sync.Once
	mu    sync.Mutex
	tests map[int]*watchedBubble
}

// watchedBubble is a bubble, with how it was when it was last looked at.
type watchedBubble struct {
	name string
	// clusters are those that run in it.
	clusters int
	last     string
	// still is for how many looks nothing has moved.
	still int
}

// add watches the bubble of the caller, in which a cluster starts.
func (w *bubbleWatch) add(t testing.TB) {
	id := ownBubble()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tests == nil {
		w.tests = map[int]*watchedBubble{}
	}
	if w.tests[id] == nil {
		w.tests[id] = &watchedBubble{name: t.Name()}
	}
	w.tests[id].clusters++
	w.once.Do(w.beginOutside)
}

// outside is what the garbage collector finds. It is larger than what the runtime packs together with others.
type outside struct{ _ [64]byte }

// beginOutside begins to look. A goroutine and a timer that a bubble starts belong to it, but cleanups run outside of all.
func (w *bubbleWatch) beginOutside() {
	runtime.AddCleanup(new(outside), func(w *bubbleWatch) { time.AfterFunc(lookInterval, w.look) }, w)
	runtime.GC()
}

// end is told that a cluster of the caller's bubble has stopped, and returns whether it was the last one.
func (w *bubbleWatch) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.tests[ownBubble()]
	b.clusters--
	return b.clusters == 0
}

// look looks at all bubbles, and ends the process with the reason if one will never go on: its test cannot be told, since it waits
// for its bubble's time.
func (w *bubbleWatch) look() {
	defer time.AfterFunc(lookInterval, w.look)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tests) == 0 {
		return
	}
	of := map[int][]goroutine{}
	for _, g := range goroutines() {
		of[g.bubble] = append(of[g.bubble], g)
	}
	for id, b := range w.tests {
		if len(of[id]) == 0 {
			delete(w.tests, id)
			continue
		}
		if why := b.judge(of[id]); why != "" {
			panic("setpointtest: " + why)
		}
	}
}

// judge returns why the bubble never goes on, "" if it may.
func (b *watchedBubble) judge(all []goroutine) string {
	now, waiting, accepting := &strings.Builder{}, []goroutine(nil), false
	moves := false
	for _, g := range all {
		now.WriteString(g.id + g.state + "\n")
		moves = moves || !g.waits()
		if g.waitsForNetwork() {
			waiting, accepting = append(waiting, g), accepting || g.accepts()
		}
	}
	if b.last != now.String() || moves {
		b.still = 0
	}
	b.last = now.String()
	b.still++
	limit := answerLooks
	if accepting {
		limit = acceptLooks
	}
	if len(waiting) > 0 && b.still > limit {
		return fmt.Sprintf("the time of the bubble of %s stands still, because this waits for the network%s:\n\t%s\n%s",
			b.name, addresses(accepting), listed(waiting), remedy(waiting))
	}
	return ""
}

// othersOf are those that are not the test itself.
func othersOf(all []goroutine) (others []goroutine) {
	for _, g := range all {
		if !g.ofTesting() {
			others = append(others, g)
		}
	}
	return others
}

func listed(all []goroutine) string {
	var lines []string
	for _, g := range all[:min(len(all), namedGoroutines)] {
		lines = append(lines, g.String())
	}
	if more := len(all) - namedGoroutines; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n\t")
}

// remedy says what to do about goroutines that wait for the network.
func remedy(waiting []goroutine) string {
	var stacks strings.Builder
	for _, g := range waiting {
		stacks.WriteString(g.stack)
	}
	switch text := stacks.String(); {
	case strings.Contains(text, "controller-runtime/pkg/webhook"):
		return "a bubble cannot serve webhooks: run this test outside of synctest.Test"
	case strings.Contains(text, "controller-runtime/pkg/"):
		return "make the manager with the options that manager.Options(c) returns (package setpointtest/envtest/manager), or set Options.Metrics.BindAddress to \"0\""
	}
	return "let the program open no port and no connection in a bubble, or run this test outside of synctest.Test"
}

// tellLeft names what is left in the bubble when the test has ended: if it never ends, Go says no more than that.
func (w *world) tellLeft() {
	if !w.bubble || !bubbles.end() {
		return
	}
	synctest.Wait()
	id, self := ownBubble(), ""
	var all []goroutine
	for _, g := range goroutines() {
		if self == "" {
			self = g.id // the first is the caller
			continue
		}
		if g.bubble == id {
			all = append(all, g)
		}
	}
	if left := othersOf(all); len(left) > 0 {
		fmt.Fprintf(w.t.Output(), "setpointtest: after the end of the test these run on; let them end with t.Context(), or a bubble never ends:\n\t%s\n", listed(left))
	}
}
