package auditlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// bufferLimit bounds the bytes that wait for the disk; an event beyond it is lost.
	bufferLimit = 16 << 20
	// chunkBytes is about how much is written at once: whole events, at least one.
	chunkBytes = 256 << 10
	// keptBytes is how large a buffer may have grown and still be used again.
	keptBytes = 1 << 20
	// lossInterval is how often losses are reported at most.
	lossInterval = 10 * time.Second
)

var errFull = errors.New("the disk does not keep up: the buffer is full")

// buffer is a writer that never waits: run writes what was given to it. Each Write is
// one event, which ends with the only newline in it.
type buffer struct {
	out       io.Writer
	logger    *slog.Logger
	wake      chan struct{} // has room for one: something waits
	lostTotal prometheus.Counter

	mu      sync.Mutex
	waiting []byte
	// lost is what no report has told of yet; reported is when the last one was.
	lost     int
	reported time.Time
}

func newBuffer(out io.Writer, logger *slog.Logger) *buffer {
	return &buffer{out: out, logger: logger, wake: make(chan struct{}, 1), lostTotal: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "setpoint_audit_events_lost_total", Help: "Audit events that were not written: the disk failed, or did not keep up.",
	})}
}

// Write takes an event. It returns no error: a request is not to blame for the disk.
func (b *buffer) Write(event []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting)+len(event) > bufferLimit {
		b.lose(1, errFull)
		return len(event), nil
	}
	b.waiting = append(b.waiting, event...)
	select {
	case b.wake <- struct{}{}:
	default: // run knows already
	}
	return len(event), nil
}

// lose counts what is gone and tells it, now and then. b.mu must be held.
func (b *buffer) lose(events int, why error) {
	b.lost += events
	b.lostTotal.Add(float64(events))
	if time.Since(b.reported) < lossInterval {
		return
	}
	b.logger.Error("audit events were lost", "events", b.lost, "err", why)
	b.lost, b.reported = 0, time.Now()
}

// run writes what waits, until ctx ends and nothing does.
func (b *buffer) run(ctx context.Context) {
	var empty []byte
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			b.flush(b.take(nil))
			return
		}
		events := b.take(empty)
		b.flush(events)
		if empty = events[:0]; cap(empty) > keptBytes {
			empty = nil
		}
	}
}

// take exchanges what waits for an empty slice.
func (b *buffer) take(empty []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.waiting
	b.waiting = empty
	return events
}

// flush writes whole events, so that a file that is full ends with one.
func (b *buffer) flush(events []byte) {
	for len(events) > 0 {
		n := endOfChunk(events)
		if _, err := b.out.Write(events[:n]); err != nil {
			b.mu.Lock()
			b.lose(bytes.Count(events[:n], []byte("\n")), err)
			b.mu.Unlock()
		}
		events = events[n:]
	}
}

// endOfChunk is behind the last event within chunkBytes, or behind the first.
func endOfChunk(events []byte) int {
	end := bytes.LastIndexByte(events[:min(len(events), chunkBytes)], '\n')
	if end < 0 {
		end = bytes.IndexByte(events, '\n')
	}
	if end < 0 {
		return len(events)
	}
	return end + 1
}
