package kubeletapi

import (
	"net/http"
	"sync"
	"time"
)

const (
	// gatherTime is how long lines of a log wait for those that follow them at once, and gatherBytesMax how much of them: each line by itself
	// would cost a record of TLS and two system calls, here and at the server.
	gatherTime     = 10 * time.Millisecond
	gatherBytesMax = 32 << 10
)

// gathered sends lines to a client. A line after a pause goes at once, others within gatherTime. It must be closed. It is safe for use by
// one goroutine, and its own timer.
type gathered struct {
	w http.ResponseWriter
	// outside runs what may wait for the client.
	outside func(func())

	mu    sync.Mutex
	kept  []byte
	sent  time.Time
	timer *time.Timer // nil: nothing is kept
	wrote bool
	err   error // of an earlier write
}

// Write implements io.Writer.
func (g *gathered) Write(p []byte) (int, error) {
	if !g.mu.TryLock() {
		g.outside(g.mu.Lock) // the timer sends, and the client may not read
	}
	defer g.mu.Unlock()
	g.wrote = true
	g.kept = append(g.kept, p...)
	switch {
	case len(g.kept) >= gatherBytesMax || time.Since(g.sent) >= gatherTime:
		g.outside(g.send)
	case g.timer == nil:
		g.timer = time.AfterFunc(gatherTime, g.late)
	}
	return len(p), g.err
}

// late sends what nothing has followed.
func (g *gathered) late() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.send()
}

// send is called with the lock held.
func (g *gathered) send() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if len(g.kept) == 0 || g.err != nil {
		return
	}
	_, g.err = g.w.Write(g.kept)
	if g.err == nil {
		g.err = http.NewResponseController(g.w).Flush()
	}
	g.kept, g.sent = g.kept[:0], time.Now()
}

// Close sends what is left. Nothing is sent after it.
func (g *gathered) Close() { g.late() }
