package shim

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Client asks the shim of one sandbox. Its methods are safe for concurrent use; each opens its own connection.
type Client struct {
	// Patience is how long a shim may take for what it does at once; starts and streams take as long as they take.
	Patience time.Duration
	dir      string
}

// patience is generous: a shim answers in milliseconds unless the machine is badly overloaded, and one that does not is killed.
const patience = 30 * time.Second

// ErrSilent says that a shim has not answered within the Client's Patience: it hangs, somebody has stopped it perhaps.
var ErrSilent = errors.New("the pod's shim does not answer")

// NewClient speaks to the shim in the sandbox directory dir.
func NewClient(dir string) *Client { return &Client{dir: dir, Patience: patience} }

// Start starts a container; a [StartError] says why its command could not run.
func (c *Client) Start(ctx context.Context, req *StartRequest) (*State, error) {
	answer, err := c.call(ctx, request{Op: opStart, Start: req})
	return answer.State, err
}

// Signal sends a signal to a container's main process; one that has ended is no error.
func (c *Client) Signal(ctx context.Context, id string, signal syscall.Signal) error {
	_, err := c.ask(ctx, request{Op: opSignal, ID: id, Signal: int(signal)})
	return err
}

// ReopenLog opens the container's log file anew after a rotation.
func (c *Client) ReopenLog(ctx context.Context, id string) error {
	_, err := c.ask(ctx, request{Op: opReopen, ID: id})
	return err
}

// Resize sets the size of a container's terminal, in characters.
func (c *Client) Resize(ctx context.Context, id string, width, height uint16) error {
	_, err := c.ask(ctx, request{Op: opResize, ID: id, Width: width, Height: height})
	return err
}

// Shutdown ends a shim that has no running container.
func (c *Client) Shutdown(ctx context.Context) error {
	_, err := c.ask(ctx, request{Op: opShutdown})
	return err
}

// Watch calls changed for every container the shim has and for every later change, until ctx or the shim ends. It
// calls connected once, after the shim has answered.
func (c *Client) Watch(ctx context.Context, connected func(), changed func(State)) error {
	conn, reader, err := c.open(ctx, request{Op: opWatch})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := readResponse(reader); err != nil {
		return err
	}
	connected()
	decoder := json.NewDecoder(reader)
	for {
		var state State
		if err := decoder.Decode(&state); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		changed(state)
	}
}

// Attach copies between the streams and the container until it ends or ctx does. Streams may be nil.
func (c *Client) Attach(ctx context.Context, id string, stdin io.Reader, stdout, stderr io.Writer) error {
	conn, reader, err := c.open(ctx, request{Op: opAttach, ID: id})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := readResponse(reader); err != nil {
		return err
	}
	if stdin != nil {
		go func() {
			_, _ = io.Copy(conn, stdin)
			_ = conn.CloseWrite() // the shim may have ended first
		}()
	}
	err = readFrames(reader, stdout, stderr)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func readFrames(reader io.Reader, stdout, stderr io.Writer) error {
	header := make([]byte, frameHeaderBytes)
	for {
		if _, err := io.ReadFull(reader, header); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		to := stdout
		if header[0] == streamStderr {
			to = stderr
		}
		if to == nil {
			to = io.Discard
		}
		if _, err := io.CopyN(to, reader, int64(binary.BigEndian.Uint32(header[1:]))); err != nil {
			return err
		}
	}
}

// ask is a call whose answer comes at once.
func (c *Client) ask(ctx context.Context, req request) (response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Patience, ErrSilent)
	defer cancel()
	answer, err := c.call(ctx, req)
	if err != nil && errors.Is(context.Cause(ctx), ErrSilent) {
		return answer, ErrSilent
	}
	return answer, err
}

func (c *Client) call(ctx context.Context, req request) (response, error) {
	conn, reader, err := c.open(ctx, req)
	if err != nil {
		return response{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer, err := readResponse(reader)
	if ctx.Err() != nil {
		return answer, ctx.Err()
	}
	return answer, err
}

// open reaches the socket through a descriptor of its directory: the path may be longer than a socket address can be.
func (c *Client) open(ctx context.Context, req request) (*net.UnixConn, *bufio.Reader, error) {
	dir, err := os.Open(c.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("shim: %w", err)
	}
	defer dir.Close()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), SocketName))
	if err != nil {
		return nil, nil, fmt.Errorf("shim: %w", err)
	}
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("shim: %w", err)
	}
	return conn.(*net.UnixConn), bufio.NewReader(conn), nil
}

func readResponse(reader *bufio.Reader) (response, error) {
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return response{}, fmt.Errorf("shim: %w", err)
	}
	var answer response
	if err := json.Unmarshal(line, &answer); err != nil {
		return response{}, fmt.Errorf("shim: %w", err)
	}
	if answer.Code != 0 {
		return answer, &StartError{Message: answer.Error, Code: answer.Code}
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}
