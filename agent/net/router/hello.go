package router

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

const (
	// helloBytesMax is how much is read of a connection to find its server name, and helloTimeout how long that may take.
	helloBytesMax = 64 << 10
	helloTimeout  = 10 * time.Second
)

var errEnough = errors.New("the server name is known")

// readServerName reads the beginning of a TLS connection. Who reads from the one that it returns gets this beginning, too.
func readServerName(conn net.Conn) (again net.Conn, serverName string, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, "", err
	}
	var read bytes.Buffer
	only := listening{conn, io.TeeReader(io.LimitReader(conn, helloBytesMax), &read)}
	err = tls.Server(only, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		serverName = hello.ServerName
		return nil, errEnough
	}}).HandshakeContext(context.Background())
	if !errors.Is(err, errEnough) {
		return nil, "", err
	}
	return &replayed{Conn: conn, read: io.MultiReader(&read, conn)}, serverName, conn.SetReadDeadline(time.Time{})
}

// listening is a connection of which the first bytes are read, and to which nothing is written: its TLS may be somebody else's.
type listening struct {
	net.Conn
	io.Reader
}

func (l listening) Read(p []byte) (int, error) { return l.Reader.Read(p) }

// Write implements net.Conn: what a handshake that is given up would say is dropped.
func (listening) Write(p []byte) (int, error) { return len(p), nil }

// replayed is a connection whose beginning was read before.
type replayed struct {
	net.Conn
	read io.Reader
}

func (r *replayed) Read(p []byte) (int, error) { return r.read.Read(p) }

// NetConn is the connection below, which the door knows.
func (r *replayed) NetConn() net.Conn { return r.Conn }

// CloseWrite ends the direction to the client.
func (r *replayed) CloseWrite() error { return closeWrite(r.Conn) }
