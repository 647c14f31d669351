package shim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// clientQueueMax is how many chunks (at most 32 KiB each) an attached client may lag behind before it is cut off.
const clientQueueMax = 64

// frameHeaderBytes: stream number, then the length as big-endian uint32.
const frameHeaderBytes = 5

// fanOut copies output to every attached client without ever waiting for one.
type fanOut struct {
	mu      sync.Mutex
	clients map[chan []byte]struct{}
	closed  bool
}

func newFanOut() *fanOut { return &fanOut{clients: map[chan []byte]struct{}{}} }

func (f *fanOut) add() chan []byte {
	client := make(chan []byte, clientQueueMax)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		close(client)
		return client
	}
	f.clients[client] = struct{}{}
	return client
}

func (f *fanOut) remove(client chan []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.clients[client]; ok {
		delete(f.clients, client)
		close(client)
	}
}

func (f *fanOut) send(stream byte, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.clients) == 0 {
		return
	}
	frame := make([]byte, frameHeaderBytes, frameHeaderBytes+len(data))
	frame[0] = stream
	binary.BigEndian.PutUint32(frame[1:], uint32(len(data)))
	frame = append(frame, data...)
	for client := range f.clients {
		select {
		case client <- frame:
		default:
			delete(f.clients, client)
			close(client)
		}
	}
}

func (f *fanOut) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for client := range f.clients {
		delete(f.clients, client)
		close(client)
	}
}

// attach serves one client until it leaves, the container ends or, if the container's input stays open for others, that of the client
// ends: kubectl run --attach --leave-stdin-open waits for that. A client that has no input says nothing of its end.
func (c *container) attach(conn *net.UnixConn, input io.Reader) {
	frames := c.streams.add()
	go func() {
		c.copyInput(input)
		// Whoever closed the container's input with its own wants what comes of it; only a dead connection ends it, noticed when writing.
		if !c.request.StdinOnce {
			c.streams.remove(frames)
		}
	}()
	for frame := range frames {
		if _, err := conn.Write(frame); err != nil {
			c.streams.remove(frames)
			return
		}
	}
}

func (c *container) copyInput(input io.Reader) {
	if c.stdin == nil {
		_, _ = io.Copy(io.Discard, input)
		return
	}
	n, err := io.Copy(c.stdin, input)
	// The end of one client's input ends the container's only if it was asked to be read once.
	if c.request.StdinOnce && c.terminal == nil && (n > 0 || err == nil) {
		c.closeStdin()
	}
}

func (c *container) closeStdin() {
	c.stdinMu.Lock()
	defer c.stdinMu.Unlock()
	if c.stdin != nil {
		_ = c.stdin.Close() // closing twice is harmless
	}
}

func (c *container) resize(width, height uint16) error {
	if c.terminal == nil {
		return errors.New("container has no terminal")
	}
	return Resize(c.terminal, width, height)
}

// Resize sets a terminal's size in characters.
func Resize(terminal *os.File, width, height uint16) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var ioctlErr error
	err = raw.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
	})
	if err := errors.Join(err, ioctlErr); err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}
