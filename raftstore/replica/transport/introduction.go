package transport

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// refusedTellInterval is how often a refusal between two members is told.
	refusedTellInterval = 30 * time.Second
	// refusedMax is how many names of members are remembered for that.
	refusedMax = 64
)

// errRefused: one of two members will not speak with the other.
var errRefused = errors.New("raft connection refused")

// Greeting is the first message on a connection between members, before raft's own messages. Fields may be
// added.
type Greeting struct {
	// To is the member id that is called or answered, From the own.
	To   string `json:"to"`
	From string `json:"from"`
	// Life and FormerLife are those of the state; see state.Root.
	Life       string `json:"life"`
	FormerLife string `json:"formerLife,omitempty"`
	// Had is the last committed entry that From knows to have been on To's disk.
	Had uint64 `json:"had,omitempty"`
	// Waits: the caller sends nothing before it has the answer. Else the answer comes
	// with what raft answers first, or alone if the connection is refused.
	Waits bool `json:"waits,omitempty"`
}

// reply is the answer to a greeting.
type reply struct {
	Greeting
	// Refusal is why the connection is closed now, "" if it is not.
	Refusal string `json:"refusal,omitempty"`
}

// introducedConn is a connection whose caller said who it is. Raft may send at once; the
// answer is judged before anything else is read.
type introducedConn struct {
	net.Conn
	stream *streamLayer
	own    Greeting
	hear   sync.Once
	err    error
}

// introduce says who calls, and with greetForAnswer hears who is there.
func (c *introducedConn) introduce(ctx context.Context, kind byte) error {
	end, _ := ctx.Deadline()
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	c.own.Waits = kind == greetForAnswer
	text, err := message([]byte{greetAll}, c.own)
	if err != nil {
		return err
	}
	if _, err := c.Conn.Write(text); err != nil {
		return err
	}
	if c.own.Waits {
		if err := c.heard(); err != nil {
			return err
		}
	}
	return c.SetDeadline(time.Time{})
}

// Read implements net.Conn.
func (c *introducedConn) Read(b []byte) (int, error) {
	if err := c.heard(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *introducedConn) heard() error {
	c.hear.Do(func() { c.err = c.judge() })
	return c.err
}

func (c *introducedConn) judge() error {
	var heard reply
	if err := receive(c.Conn, nil, &heard); err != nil {
		return fmt.Errorf("%w: %w", errWrongMember, err)
	}
	reason := heard.Refusal
	if reason == "" {
		err := c.stream.cfg.Meet(heard.Greeting)
		if err == nil {
			return nil
		}
		reason = err.Error()
	}
	c.stream.tellRefused(c.own.To, reason)
	return errRefused // raft tells it each time: the reason is told above
}

// answeringConn is a connection whose answer to the greeting goes out before all else.
type answeringConn struct {
	net.Conn
	once   sync.Once
	answer []byte
}

// Write implements net.Conn.
func (c *answeringConn) Write(b []byte) (n int, err error) {
	var first []byte
	c.once.Do(func() { first = c.answer })
	if first == nil {
		return c.Conn.Write(b)
	}
	n, err = c.Conn.Write(append(first, b...))
	return max(0, n-len(first)), err
}

// answerAll hears the rest of a greeting, whose first byte of length was read, and says
// who is here. It returns the connection for raft to use.
func (s *streamLayer) answerAll(conn net.Conn, first byte) (net.Conn, error) {
	var heard Greeting
	if err := receive(conn, []byte{first}, &heard); err != nil {
		return nil, err
	}
	own := reply{Greeting: s.cfg.Introduce(heard.From)}
	if refused := s.judge(heard); refused != nil {
		own.Refusal = refused.Error()
		return nil, errors.Join(refused, refuse(conn, own))
	}
	text, err := message(nil, own)
	if err != nil {
		return nil, err
	}
	answering := &answeringConn{Conn: conn, answer: text}
	if heard.Waits {
		if _, err := answering.Write(nil); err != nil {
			return nil, err
		}
	}
	return answering, conn.SetDeadline(time.Time{})
}

func (s *streamLayer) judge(heard Greeting) error {
	if heard.To != s.cfg.ID {
		return fmt.Errorf("%w: %q, this is %q", errWrongMember, heard.To, s.cfg.ID)
	}
	err := s.cfg.Meet(heard)
	if err != nil {
		s.tellRefused(heard.From, err.Error())
	}
	return err
}

// refuse tells the caller why, whatever it sends meanwhile.
func refuse(conn net.Conn, own reply) error {
	text, err := message(nil, own)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends as the connection is closed
	_, err = conn.Write(text)
	return err
}

// message is what goes out behind the first bytes: a length and JSON.
func message(first []byte, content any) ([]byte, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if len(text) > greetingBytesMax {
		return nil, fmt.Errorf("greeting of %d bytes, limit %d", len(text), greetingBytesMax)
	}
	return append(binary.BigEndian.AppendUint16(first, uint16(len(text))), text...), nil
}

// receive reads a message, of whose length the bytes in begun were read.
func receive(conn net.Conn, begun []byte, message any) error {
	var length [2]byte
	n := copy(length[:], begun)
	if _, err := io.ReadFull(conn, length[n:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint16(length[:])
	if size > greetingBytesMax {
		return fmt.Errorf("greeting of %d bytes, limit %d", size, greetingBytesMax)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(conn, text); err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}

// tellRefused logs a refusal between this member and another, not each time.
func (s *streamLayer) tellRefused(id, reason string) {
	s.mu.Lock()
	last, known := s.told[id]
	if known && time.Since(last) < refusedTellInterval {
		s.mu.Unlock()
		return
	}
	if len(s.told) >= refusedMax {
		clear(s.told)
	}
	s.told[id] = time.Now()
	s.mu.Unlock()
	s.cfg.Logger.Warn("raft connection refused", "server", s.cfg.Name(id), "reason", reason)
}
