package setpointtest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// lookInterval is how often bubbles are looked at, in real time.
	lookInterval = 5 * time.Second
	// acceptLimit is for how long nothing may move in a bubble in which somebody waits for connections, and outside of bubbles, where
	// somebody may be about to make one; answerLimit the same if somebody waits for an answer, which may come.
	acceptLimit = 30 * time.Second
	answerLimit = time.Minute
	// looksMin is how many looks in a row find that nothing moves before that counts, however short the limit is.
	looksMin = 2
	// namedGoroutines is how many a failure names.
	namedGoroutines = 10
	// standstillVariable names the environment variable that replaces both limits, and standstillOff is what switches them off.
	standstillVariable = "SETPOINTTEST_STANDSTILL"
	standstillOff      = "off"
)

// bubbles are those in which a cluster runs. Their time stands still while one of their goroutines waits for the network, and
// with it each limit that the test has: so they are watched from outside, by the clock of the process.
var bubbles bubbleWatch

type bubbleWatch struct {
	mu    sync.Mutex
	tests map[int]*watchedBubble
	// looks is whether somebody looks, with limits.
	looks  bool
	limits standstill
	// size is how much text all goroutines had at the last look, in bytes.
	size int
}

// standstill is how often bubbles are looked at, and for how long time may stand still in them. The zero value looks at none.
type standstill struct{ interval, accept, answer time.Duration }

// readStandstill reads what the environment variable says.
func readStandstill(text string) (standstill, error) {
	switch text {
	case "":
		return standstill{lookInterval, acceptLimit, answerLimit}, nil
	case standstillOff:
		return standstill{}, nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit <= 0 {
		return standstill{}, fmt.Errorf("%s is %q: write %s, or for how long the time of a bubble may stand still, such as 2m", standstillVariable, text, standstillOff)
	}
	return standstill{min(lookInterval, max(limit/looksMin, time.Millisecond)), limit, limit}, nil
}

// watchedBubble is a bubble, with how it was when it was last looked at.
type watchedBubble struct {
	name string
	// clusters are those that run in it.
	clusters int
	last     string
	// still is at how many looks after the last one that saw something move nothing had moved.
	still int
}

// add watches the bubble of the caller, in which a cluster starts.
func (w *bubbleWatch) add(t testing.TB) {
	t.Helper()
	limits, err := readStandstill(os.Getenv(standstillVariable))
	if err != nil {
		t.Fatal("setpointtest: " + err.Error())
	}
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
	if !w.looks && limits.interval > 0 {
		w.looks, w.limits = true, limits
		w.beginOutside()
	}
}

// outside is what the garbage collector finds. It is larger than what the runtime packs together with others.
type outside struct{ _ [64]byte }

// beginOutside begins to look. A goroutine and a timer that a bubble starts belong to it, but cleanups run outside of all.
func (w *bubbleWatch) beginOutside() {
	runtime.AddCleanup(new(outside), func(w *bubbleWatch) { time.AfterFunc(w.limits.interval, w.look) }, w)
	runtime.GC()
}

// end is told that a cluster of the caller's bubble has stopped, and returns whether it was the last one.
func (w *bubbleWatch) end() bool { return w.endIn(ownBubble()) }

func (w *bubbleWatch) endIn(id int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.tests[id]
	if b == nil {
		return false // it cannot be said how many there are
	}
	b.clusters--
	if b.clusters == 0 && !w.looks {
		delete(w.tests, id)
	}
	return b.clusters == 0
}

// look looks at all bubbles, and ends the process with the reason if one will never go on: its test cannot be told, since it waits
// for its bubble's time.
func (w *bubbleWatch) look() {
	defer time.AfterFunc(w.limits.interval, w.look)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tests) == 0 {
		return
	}
	all, size, whole := goroutines(w.size)
	w.size = size
	if !whole {
		return // who is missing may be the one that moves
	}
	if why := w.judge(all[1:]); why != "" { // the first is the one that looks
		panic("setpointtest: " + why)
	}
}

// judge returns why one of the bubbles never goes on, "" if all may.
func (w *bubbleWatch) judge(all []goroutine) string {
	of := map[int][]goroutine{}
	for _, g := range all {
		of[g.bubble] = append(of[g.bubble], g)
	}
	outside := states(of[0])
	for id, b := range w.tests {
		if len(of[id]) == 0 {
			delete(w.tests, id)
			continue
		}
		if why := b.judge(of[id], outside, w.limits); why != "" {
			return why
		}
	}
	return ""
}

// states says what goroutines do: it changes when one begins, ends, or waits for something else.
func states(all []goroutine) string {
	text := &strings.Builder{}
	for _, g := range all {
		text.WriteString(g.id + g.state + "\n")
	}
	return text.String()
}

// judge returns why the bubble never goes on, "" if it may. What happens outside of all bubbles may be what it waits for.
func (b *watchedBubble) judge(all []goroutine, outside string, limits standstill) string {
	waiting, accepting, moves := []goroutine(nil), false, false
	for _, g := range all {
		moves = moves || !g.waits()
		if g.waitsForNetwork() {
			waiting, accepting = append(waiting, g), accepting || g.accepts()
		}
	}
	now := states(all) + outside
	if b.still++; b.last != now || moves {
		b.still = 0
	}
	b.last = now
	limit := limits.answer
	if accepting {
		limit = limits.accept
	}
	still := time.Duration(b.still) * limits.interval // a process that was stopped meanwhile has not looked
	if len(waiting) == 0 || still < limit {
		return ""
	}
	return fmt.Sprintf("the time of the bubble of %s has stood still for %v, because this waits for the network%s:\n\t%s\n%s\n(%s=%s lets it wait)",
		b.name, still, addresses(accepting), listed(waiting), remedy(waiting), standstillVariable, standstillOff)
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
	goroutines, _, _ := goroutines(0)
	for _, g := range goroutines {
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
