package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// greetingLimit bounds waiting for the greeting of a connection.
const greetingLimit = 5 * time.Second

// A greeting is one byte, the length of the member id in another, and the id. A member
// of a life sends greetAll instead, two bytes of length, and a Greeting as JSON; the
// answer has length and JSON too.
const (
	// greetSilently: a wrong member closes the connection.
	greetSilently = 0
	// greetForAnswer: the right member says so with a byte.
	greetForAnswer = 1
	// greetAll: see above.
	greetAll = 2

	// greetingBytesMax bounds a greeting and its answer.
	greetingBytesMax = 4096
)

// errWrongMember: the server has another life than the one that was called.
var errWrongMember = errors.New("connection for another member")

// call opens a connection to a member, at the first of its addresses where it is.
// The certificate proves the name only, and a machine that was replaced may still
// run under it: so the member id is called.
func (s *streamLayer) call(ctx context.Context, id string) (net.Conn, error) {
	addresses, err := s.cfg.Addresses(id)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 1 {
		return s.callAt(ctx, addresses[0], id, greetSilently)
	}
	var failed []error
	for i, address := range addresses {
		ctx, cancel := shareOf(ctx, len(addresses)-i)
		conn, err := s.callAt(ctx, address, id, greetForAnswer)
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// shareOf leaves time for the other addresses.
func shareOf(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}

func (s *streamLayer) callAt(ctx context.Context, address, id string, kind byte) (net.Conn, error) {
	own := s.cfg.Introduce(id) // whether or not it can be reached: see Transport.Had
	conn, err := s.cfg.Dial(ctx, address, s.cfg.Name(id))
	if err != nil {
		return nil, err
	}
	if own.Life != "" {
		introduced := &introducedConn{Conn: conn, stream: s, own: own}
		conn, err = introduced, introduced.introduce(ctx, kind)
	} else {
		err = greet(ctx, conn, id, kind)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("calling %s at %s: %w", id, address, err), conn.Close())
	}
	return conn, nil
}

// greet says which member is called.
func greet(ctx context.Context, conn net.Conn, id string, kind byte) error {
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	if _, err := conn.Write(append([]byte{kind, byte(len(id))}, id...)); err != nil {
		return err
	}
	if kind == greetForAnswer {
		var answer [1]byte
		if _, err := io.ReadFull(conn, answer[:]); err != nil {
			return fmt.Errorf("%w: %w", errWrongMember, err)
		}
	}
	return conn.SetDeadline(time.Time{})
}

// answer reads whom the other side calls, and agrees if it is this member. It returns the
// connection for raft to use.
func (s *streamLayer) answer(conn net.Conn) (net.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(greetingLimit)); err != nil {
		return nil, err
	}
	var head [2]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	if head[0] == greetAll {
		return s.answerAll(conn, head[1])
	}
	called := make([]byte, head[1])
	if _, err := io.ReadFull(conn, called); err != nil {
		return nil, err
	}
	if string(called) != s.cfg.ID {
		return nil, fmt.Errorf("%w: %q, this is %q", errWrongMember, called, s.cfg.ID)
	}
	if head[0] == greetForAnswer {
		if _, err := conn.Write([]byte{1}); err != nil {
			return nil, err
		}
	}
	return conn, conn.SetDeadline(time.Time{})
}

// greeted handles a connection that calls this member, and reports whether one did.
func (s *streamLayer) greeted(conn net.Conn) bool {
	answered, err := s.answer(conn)
	if err != nil {
		s.cfg.Logger.Debug("raft connection refused", "err", err)
		conn.Close()
		return false
	}
	s.handle(answered)
	return true
}
