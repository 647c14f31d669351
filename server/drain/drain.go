package drain

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// requestsTimeout is how long requests may go on: longer than a webhook may take that does not say how long.
	requestsTimeout = 15 * time.Second
	// streamsTimeout is how long watches and streams go on: they have no end of their own.
	streamsTimeout = 200 * time.Millisecond
	// lastFramesTimeout is how long the answers of finished requests have to go out.
	lastFramesTimeout = 50 * time.Millisecond
	// pollInterval is how often it is looked whether requests still run.
	pollInterval = 5 * time.Millisecond
)

// ErrStopping is why a server that stops is not ready.
var ErrStopping = errors.New("process is shutting down")

// Drain counts the running requests of one server. It is safe for concurrent use.
type Drain struct {
	stopping atomic.Bool
	running  atomic.Int64

	requests, streams       context.Context
	endRequests, endStreams context.CancelFunc
}

// New lets all requests run.
func New() *Drain {
	d := &Drain{}
	d.requests, d.endRequests = context.WithCancel(context.Background())
	d.streams, d.endStreams = context.WithCancel(d.requests)
	return d
}

// Requests is the base of every request's context: it ends when requests are cut.
func (d *Drain) Requests() context.Context { return d.requests }

// Streams ends when watches and other requests without an end of their own have to end.
func (d *Drain) Streams() context.Context { return d.streams }

// Count counts the requests that run, those that are taken over by a stream included.
func (d *Drain) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.running.Add(1)
		defer d.running.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// Check is a health check: it fails from Begin on.
func (d *Drain) Check(context.Context) error {
	if d.stopping.Load() {
		return ErrStopping
	}
	return nil
}

// Begin says that the server stops soon. It still serves.
func (d *Drain) Begin() { d.stopping.Store(true) }

// Close ends the server as the package promises, and returns when no request runs. The
// library would wait for the connections of Raft too, which never fall idle.
func (d *Drain) Close(server *http.Server) {
	d.Begin()
	ctx, cancel := context.WithTimeout(context.Background(), requestsTimeout)
	defer cancel()
	defer d.endRequests()
	defer time.AfterFunc(streamsTimeout, d.endStreams).Stop()
	go func() {
		defer cancel()
		d.wait(ctx)
		pause(ctx, lastFramesTimeout)
	}()
	if err := server.Shutdown(ctx); err != nil {
		d.endRequests()
		_ = server.Close()
	}
}

// wait returns when no request runs, or ctx has ended.
func (d *Drain) wait(ctx context.Context) {
	for d.running.Load() > 0 && pause(ctx, pollInterval) {
	}
}

// pause reports whether it lasted to the end.
func pause(ctx context.Context, length time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(length):
		return true
	}
}
