package apiserver

import (
	"bufio"
	"net"
	"net/http"
)

// streamed lets a stream wait with what it sends to its client until the tenant's time has come: pay is told of the bytes before. It is
// for exec, attach, port-forward, logs and proxies, which send as fast as a pod writes. What clients send their connections pay for.
type streamed struct {
	http.ResponseWriter
	pay func(bytes int)
}

// Write implements http.ResponseWriter.
func (s *streamed) Write(p []byte) (int, error) {
	s.pay(len(p))
	return s.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (s *streamed) Flush() {
	_ = http.NewResponseController(s.ResponseWriter).Flush() // whoever cannot does not keep anything
}

// CloseNotify is there for upstream's wrappers, as that of responseWriter.
func (s *streamed) CloseNotify() <-chan bool { return nil }

// Hijack implements http.Hijacker.
func (s *streamed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffers, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	taken := &paidConn{c, s.pay}
	buffers.Writer.Reset(taken)
	return taken, buffers, nil
}

// Unwrap lets http.ResponseController find the connection.
func (s *streamed) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// paidConn is a connection that a stream has taken over.
type paidConn struct {
	net.Conn
	pay func(bytes int)
}

// Write implements net.Conn.
func (c *paidConn) Write(p []byte) (int, error) {
	c.pay(len(p))
	return c.Conn.Write(p)
}

// CloseWrite ends one direction, if the connection knows how.
func (c *paidConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
