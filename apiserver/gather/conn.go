package gather

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
	// pieceBytes is the buffer of http2: a write of this size is not the end of a flush.
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
	if c.err == nil && len(c.held)+len(p) > heldMaxBytes {
		c.release()
	}
	switch {
	case c.err != nil:
		return 0, c.err
	case promisesMore(p):
		c.hold(p)
		return len(p), nil
	case c.held == nil:
		return c.secured.Write(p)
	}
	c.held = append(c.held, p...)
	c.release()
	return len(p), c.err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	c.release()
	c.mu.Unlock()
	return c.secured.Close()
}

func (c *conn) hold(p []byte) {
	if c.held == nil {
		c.held = buffers.Get().(*[heldMaxBytes]byte)[:0]
		c.wait()
	}
	c.held = append(c.held, p...)
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

// promisesMore tells of a piece that more will follow at once: it is a full buffer, or
// the headers of an answer with a body. A piece that begins within a frame may look so
// by accident; then it waits for nothing.
func promisesMore(p []byte) bool {
	if len(p) == pieceBytes {
		return true
	}
	if len(p) < frameHeaderBytes || http2.FrameType(p[3]) != http2.FrameHeaders {
		return false
	}
	payload := int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	flags := http2.Flags(p[4])
	return len(p) == frameHeaderBytes+payload && flags.Has(http2.FlagHeadersEndHeaders) && !flags.Has(http2.FlagHeadersEndStream)
}
