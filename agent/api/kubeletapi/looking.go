package kubeletapi

import (
	"context"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// lookBytesEach is how much of a log is read in a second at least, and lookLeast how long that takes at least: a follower, who never
	// ends, gives its turn back when it must have read what there was.
	lookBytesEach = 50 << 20
	lookLeast     = 10 * time.Millisecond
)

// newLooks are the turns of those who read a log: to look for a time in one of 10 MiB takes a processor as long as hundreds of requests. So
// the requests of one namespace have half of the processors at a time, at least one.
func newLooks() *shares.Turns {
	return shares.NewTurns(shares.Limits{All: math.MaxInt, Each: max(1, runtime.GOMAXPROCS(0)/2)})
}

// look is a turn of one request. It is for one goroutine.
type look struct {
	ctx    context.Context
	turns  *shares.Turns
	holder shares.Holder
	leave  func()      // once; nil: it has none
	ends   *time.Timer // nil: it keeps its turn
	over   bool        // it takes no other turn
}

// begin waits for the turn. A follower keeps it for so long as it takes to read the file.
func (l *look) begin(follows bool, path string) {
	l.enter()
	if !follows {
		return
	}
	length := lookLeast
	if file, err := os.Stat(path); err == nil {
		length += time.Duration(file.Size()) * time.Second / lookBytesEach
	}
	l.over = true
	l.ends = time.AfterFunc(length, l.leave)
}

func (l *look) enter() {
	leave, err := l.turns.Wait(l.ctx, l.holder)
	if err != nil {
		leave = func() {} // its client is gone
	}
	l.leave = sync.OnceFunc(leave)
}

// outside runs what waits for the client without the turn.
func (l *look) outside(wait func()) {
	l.leave()
	wait()
	if !l.over {
		l.enter()
	}
}

func (l *look) end() {
	if l.ends != nil {
		l.ends.Stop()
	}
	l.leave()
}
