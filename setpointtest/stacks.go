package setpointtest

import (
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

const (
	// stacksMin and stacksMax bound the text of all goroutines, in bytes: what is beyond is not looked at.
	stacksMin = 1 << 20
	stacksMax = 64 << 20
)

// goroutine is one of the process, as the runtime prints it.
type goroutine struct {
	id, state string
	// bubble is the number of its testing/synctest bubble, 0 outside of all.
	bubble int
	stack  string
}

// header is the first line of a goroutine: goroutine 7 [chan receive (durable), 2 minutes, synctest bubble 1]:.
var header = regexp.MustCompile(`^goroutine (\d+) [^\[]*\[([^,\]]*)(?:,[^\]]*?)??(?:, synctest bubble (\d+))?[^\]]*\]:\n`)

// goroutines are all of the process, the caller first. The world stands still meanwhile, for about a millisecond a thousand, and once
// more for each time that the text is larger than was expected: the caller keeps size for the next time. whole is false if it is
// larger than all that is looked at.
func goroutines(expected int) (all []goroutine, size int, whole bool) {
	text := make([]byte, min(max(stacksMin, expected+expected/2), stacksMax))
	n := runtime.Stack(text, true)
	for n == len(text) && n < stacksMax {
		text = make([]byte, min(2*len(text), stacksMax))
		n = runtime.Stack(text, true)
	}
	for stack := range strings.SplitSeq(string(text[:n]), "\n\n") {
		if g, ok := parseGoroutine(stack); ok {
			all = append(all, g)
		}
	}
	return all, n, n < stacksMax
}

func parseGoroutine(stack string) (goroutine, bool) {
	found := header.FindStringSubmatch(stack)
	if found == nil {
		return goroutine{}, false
	}
	bubble, _ := strconv.Atoi(found[3]) // none outside
	return goroutine{id: found[1], state: found[2], bubble: bubble, stack: stack[len(found[0]):]}, true
}

// ownBubble is the number of the bubble of the caller.
func ownBubble() int {
	text := make([]byte, 1<<10)
	g, _ := parseGoroutine(string(text[:runtime.Stack(text, false)]) + "\n")
	return g.bubble
}

// waitsForNetwork reports whether it waits for a socket, for which fake time waits too.
func (g *goroutine) waitsForNetwork() bool { return g.state == "IO wait" }

// accepts reports whether it waits for connections, which nobody need ever make.
func (g *goroutine) accepts() bool { return strings.Contains(g.stack, "Accept(") }

// waits reports whether it does nothing until somebody else or time wakes it.
func (g *goroutine) waits() bool {
	return g.waitsForNetwork() || strings.HasSuffix(g.state, "(durable)") || strings.HasPrefix(g.state, "synctest.")
}

// ofTesting reports whether it is the test itself, or what waits for it.
func (g *goroutine) ofTesting() bool {
	return strings.HasPrefix(g.state, "synctest.Run") ||
		strings.Contains(g.stack, "testing.tRunner(") || strings.Contains(g.stack, "created by testing/synctest.Test ")
}

// String names it: what it does, by the first function that is not of Go's library, and where.
func (g *goroutine) String() string {
	lines := strings.Split(strings.TrimSpace(g.stack), "\n")
	what, where := strings.TrimSpace(lines[0]), ""
	for i := 0; i+1 < len(lines); i += 2 {
		name, isCreator := strings.CutPrefix(lines[i], "created by ")
		root, _, _ := strings.Cut(name, "/")
		if isCreator || strings.Contains(root, ".") && strings.Contains(name, "/") || strings.HasPrefix(name, "main.") {
			what, where = name, strings.TrimSpace(lines[i+1])
			break
		}
	}
	what, _, _ = strings.Cut(what, " in goroutine ")
	if at := strings.LastIndexByte(what, '('); at > 0 && strings.HasSuffix(what, ")") {
		what = what[:at] // without the arguments
	}
	where, _, _ = strings.Cut(where, " +0x")
	return fmt.Sprintf("goroutine %s [%s] in %s at %s", g.id, g.state, what, where)
}
