package setpointtest

import (
	"strings"
	"testing"
	"time"
)

// TestWhatStandsStill: a bubble is judged when neither it nor what is outside has moved at so many looks.
func TestWhatStandsStill(t *testing.T) {
	accepting := goroutine{id: "7", state: "IO wait", bubble: 3, stack: "net.(*TCPListener).Accept(0x1)\n\t/net.go:1\n"}
	asking := goroutine{id: "7", state: "IO wait", bubble: 3, stack: "net.(*conn).Read(0x1)\n\t/net.go:1\n"}
	calm := goroutine{id: "9", state: "select"}
	limits, err := readStandstill("")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		waiting goroutine
		moves   func(look int, g []goroutine)
		// judged is the look that ends the process, 0 if none of a hundred does.
		judged int
	}{
		"a listener":              {accepting, func(int, []goroutine) {}, 6},
		"an answer":               {asking, func(int, []goroutine) {}, 12},
		"who calls it is outside": {accepting, func(look int, g []goroutine) { g[1].state = []string{"select", "IO wait"}[look%2] }, 0},
		"it is at work":           {accepting, func(_ int, g []goroutine) { g[1].bubble, g[1].state = 3, "runnable" }, 0},
		"it begins anew":          {accepting, func(look int, g []goroutine) { g[0].state = []string{"IO wait", "select"}[look/5%2] }, 0},
		"once it moved":           {accepting, func(look int, g []goroutine) { g[0].id = []string{"7", "8"}[min(1, look/4)] }, 10},
	} {
		w := &bubbleWatch{limits: limits, tests: map[int]*watchedBubble{3: {name: "T", clusters: 1}}}
		judged := 0
		for look := 0; look < 100 && judged == 0; look++ {
			all := []goroutine{tc.waiting, calm}
			tc.moves(look, all)
			if why := w.judge(all); why != "" {
				judged = look
			}
		}
		if judged != tc.judged {
			t.Errorf("%s: judged at look %d and not %d", name, judged, tc.judged)
		}
	}
}

// TestStandstillVariable: it replaces the limits, or switches them off, and what is neither is refused.
func TestStandstillVariable(t *testing.T) {
	for text, want := range map[string]standstill{
		"":    {5 * time.Second, 30 * time.Second, time.Minute},
		"off": {},
		"1h":  {5 * time.Second, time.Hour, time.Hour},
		"2s":  {time.Second, 2 * time.Second, 2 * time.Second},
	} {
		if got, err := readStandstill(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"no", "-1s", "0s"} {
		if _, err := readStandstill(text); err == nil || !strings.Contains(err.Error(), "SETPOINTTEST_STANDSTILL is") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestABubbleThatIsNotKnown: the last cluster of a bubble ends also if the bubble is not in the list, and is not kept when nobody looks.
func TestABubbleThatIsNotKnown(t *testing.T) {
	w := &bubbleWatch{tests: map[int]*watchedBubble{3: {clusters: 2}}}
	if w.endIn(4) || w.endIn(3) || !w.endIn(3) || len(w.tests) != 0 {
		t.Errorf("%v is left", w.tests)
	}
}

// TestGoroutinesAreReadOnce: who keeps the size reads all goroutines into one text, which holds the caller first.
func TestGoroutinesAreReadOnce(t *testing.T) {
	all, size, whole := goroutines(0)
	if !whole || size == 0 || len(all) == 0 || !strings.Contains(all[0].stack, "TestGoroutinesAreReadOnce") {
		t.Errorf("%d bytes, whole: %v", size, whole)
	}
}
