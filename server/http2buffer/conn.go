package http2buffer

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

const (
	// holdMax is how long a piece waits for the next. A handler takes some 20 µs from
	// its headers to its body; what flushes its headers early, as watches do, is late by this.
	holdMax = 500 * time.Microsecond
	// heldMaxBytes is the payload of the longest record of TLS.
	heldMaxBytes = 16 << 10
	// pieceBytes is the buffer of http2: a write of this size or more is rarely the end
	// of an answer, which has a frame of its own, mostly empty.
	pieceBytes = 4 << 10
	// frameHeaderBytes is the length of what is before a frame's payload (RFC 9113, 4.1).
	frameHeaderBytes = 9
)

// secured is a *tls.Conn, of which http2 asks the state once.
type secured interface {
	net.Conn
	ConnectionState() tls.ConnectionState
}

// conn writes what http2 writes to it, in fewer pieces. All may call it, as with any
// net.Conn.
type conn struct {
	secured

	mu    sync.Mutex
	held  []byte // nil: nothing
	timer *time.Timer
	err   error // of a write that nobody waited for
}

var buffers = sync.Pool{New: func() any { return new([heldMaxBytes]byte) }}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := promisesMore(p)
	if c.held == nil && c.err == nil && !more {
		return c.secured.Write(p)
	}
	for rest := p; len(rest) > 0 && c.err == nil; {
		rest = rest[c.hold(rest):]
		if len(c.held) == heldMaxBytes {
			c.release()
		}
	}
	if !more {
		c.release()
	}
	if c.err != nil {
		return 0, c.err
	}
	return len(p), nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	c.release()
	c.mu.Unlock()
	return c.secured.Close()
}

// hold takes as much of p as fits, and says how much.
func (c *conn) hold(p []byte) int {
	if c.held == nil {
		c.held = buffers.Get().(*[heldMaxBytes]byte)[:0]
		c.wait()
	}
	n := min(len(p), heldMaxBytes-len(c.held))
	c.held = append(c.held, p[:n]...)
	return n
}

// wait sets the end of the holding.
func (c *conn) wait() {
	if c.timer != nil {
		c.timer.Reset(holdMax)
		return
	}
	c.timer = time.AfterFunc(holdMax, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.release()
	})
}

// release writes what is held.
func (c *conn) release() {
	if c.held == nil {
		return
	}
	c.timer.Stop()
	_, c.err = c.secured.Write(c.held)
	buffers.Put((*[heldMaxBytes]byte)(c.held[:heldMaxBytes]))
	c.held = nil
}

// promisesMore tells of a piece that more will follow at once: it is a full buffer or
// what did not fit into one, or the headers of an answer with a body. The last piece
// of an answer may look so by accident; then it is late by holdMax.
func promisesMore(p []byte) bool {
	if len(p) >= pieceBytes {
		return true
	}
	if len(p) < frameHeaderBytes || http2.FrameType(p[3]) != http2.FrameHeaders {
		return false
	}
	payload := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	flags := http2.Flags(p[4])
	return len(p) == frameHeaderBytes+payload && flags.Has(http2.FlagHeadersEndHeaders) && !flags.Has(http2.FlagHeadersEndStream)
}
