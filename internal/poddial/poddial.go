package poddial

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	// Path is followed by ADDRESS:PORT.
	Path = "/podDial/"
	// Protocol is what the connection is upgraded to.
	Protocol = "setpoint-tcp"
	// Feature is what a node declares in its status whose agent answers.
	Feature = "SetpointPodDial"
	// answerLimit bounds what an agent answers, in bytes.
	answerLimit = 16 << 10
)

// ErrBusy is why an agent refuses that has as many connections to the pod, or to pods of its namespace, as it allows.
var ErrBusy = errors.New("too many connections")

// ErrRefused is returned by Open when the agent answers no; the text has its reason.
var ErrRefused = errors.New("the agent refuses")

// Open asks the agent at the other end of conn for a connection to a pod. conn belongs to it: it is closed on an error.
func Open(ctx context.Context, conn net.Conn, to netip.AddrPort) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	joined, err := ask(conn, to)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return joined, nil
}

func ask(conn net.Conn, to netip.AddrPort) (net.Conn, error) {
	request, err := http.NewRequest(http.MethodGet, "http://agent"+Path+to.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", Protocol)
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: answerLimit}
	reader := bufio.NewReader(limited)
	answer, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, fmt.Errorf("read the agent's answer: %w", err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		reason, _ := io.ReadAll(answer.Body)
		text := strings.TrimSpace(string(reason))
		if answer.StatusCode == http.StatusTooManyRequests {
			return nil, fmt.Errorf("%w: %w: %s", ErrRefused, ErrBusy, text)
		}
		return nil, fmt.Errorf("%w: %s: %s", ErrRefused, answer.Status, text)
	}
	rest, err := reader.Peek(reader.Buffered()) // the pod may have spoken first
	return &joined{Conn: conn, rest: rest}, err
}

// joined is a connection of which some was read already.
type joined struct {
	net.Conn
	rest []byte
}

// Read implements net.Conn.
func (j *joined) Read(p []byte) (int, error) {
	if len(j.rest) == 0 {
		return j.Conn.Read(p)
	}
	n := copy(p, j.rest)
	j.rest = j.rest[n:]
	return n, nil
}

// CloseWrite says that no more will be written; the pod's answer can still be read.
func (j *joined) CloseWrite() error {
	if half, ok := j.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return j.Conn.Close()
}
