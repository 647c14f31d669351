package apiserver

import (
	"bufio"
	"context"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// stalledTimeout is how long the client of a watch may take nothing of what is
	// sent to it: then, or at most stalledInterval later, its watch ends. Events are
	// never kept for it meanwhile.
	stalledTimeout = 30 * time.Second
	// stalledInterval is how often each watch is looked at.
	stalledInterval = 5 * time.Second
)

// impatientWriter ends the connection, or the stream, of a client that takes nothing.
// The socket's deadline is only set then, as in limitReading. A watch may write
// hundreds of times a second, and a timer for each write would cost as much as its event.
type impatientWriter struct {
	http.ResponseWriter
	ctx        context.Context // of the request
	controller *http.ResponseController
	// writes grows when a write begins and when it ends: it is odd while one is under way.
	writes atomic.Uint64
	looks  *time.Timer
	// seen is writes at the last look, and for how long it has been so under way.
	seen    uint64
	stalled time.Duration
}

func newImpatientWriter(ctx context.Context, w http.ResponseWriter) *impatientWriter {
	i := &impatientWriter{ResponseWriter: w, ctx: ctx, controller: http.NewResponseController(w)}
	i.looks = time.AfterFunc(math.MaxInt64, i.look)
	i.looks.Reset(stalledInterval)
	return i
}

// look is called every stalledInterval until the request ends.
func (w *impatientWriter) look() {
	writes := w.writes.Load()
	switch {
	case w.ctx.Err() != nil:
		return
	case writes != w.seen || writes%2 == 0:
		w.seen, w.stalled = writes, 0
	case w.stalled+stalledInterval >= stalledTimeout:
		_ = w.controller.SetWriteDeadline(time.Unix(1, 0))
		return
	default:
		w.stalled += stalledInterval
	}
	w.looks.Reset(stalledInterval)
}

// Write implements http.ResponseWriter.
func (w *impatientWriter) Write(p []byte) (int, error) {
	w.writes.Add(1)
	defer w.writes.Add(1)
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *impatientWriter) Flush() {
	w.writes.Add(1)
	defer w.writes.Add(1)
	_ = w.controller.Flush() // the next write fails too
}

// CloseNotify is there for upstream's wrappers, as that of responseWriter.
func (w *impatientWriter) CloseNotify() <-chan bool { return nil }

// Hijack implements http.Hijacker, for watches over WebSockets.
func (w *impatientWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.controller.Hijack() }

// Unwrap lets http.ResponseController find the writer below.
func (w *impatientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
