package paidstream

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
)

const (
	// unitBytes of a stream are a unit: they are only passed on.
	unitBytes = 32 << 10
	// partUnits are for each part that is written or read by itself, such as a line of a log.
	partUnits = 0.1
)

// Units is what a part of a stream costs, in those of package cpushare.
func Units(bytes int) float64 { return partUnits + float64(bytes)/unitBytes }

// Answer lets a stream wait with what it sends to its client until the tenant's time has come, whether it is an answer or takes its
// connection over. It is for one goroutine at a time, the connection for one reader and one writer.
type Answer struct {
	http.ResponseWriter
	// Pay is told of the bytes before they are sent, and returns when they may be.
	Pay func(bytes int)
	// PayRead is told of what a connection that was taken over has brought, before the handler sees it. Nil: nobody pays for that.
	PayRead func(bytes int)
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(p []byte) (int, error) {
	a.Pay(len(p))
	return a.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (a *Answer) Flush() {
	_ = http.NewResponseController(a.ResponseWriter).Flush() // whoever cannot does not keep anything
}

// CloseNotify is there for upstream's wrappers, which want it.
func (a *Answer) CloseNotify() <-chan bool { return nil }

// Hijack implements http.Hijacker. The error is that of the writer inside: http.ErrNotSupported where nothing can be taken over.
func (a *Answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffers, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	taken := &conn{c, a.Pay, a.PayRead}
	buffers.Writer.Reset(taken)
	if a.PayRead != nil {
		come, _ := buffers.Peek(buffers.Reader.Buffered())
		buffers.Reader.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(come)), taken))
	}
	return taken, buffers, nil
}

// Unwrap lets http.ResponseController find the connection.
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// conn is a connection that a stream has taken over.
type conn struct {
	net.Conn
	pay, payRead func(bytes int)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.pay(len(p))
	return c.Conn.Write(p)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.payRead != nil && n > 0 {
		c.payRead(n)
	}
	return n, err
}

// CloseWrite ends one direction, if the connection knows how.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
