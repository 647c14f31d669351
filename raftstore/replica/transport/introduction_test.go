package transport

import (
	"context"
	"net"
	"testing"
	"time"
)

// patient is a connection that notes until when it may be used.
type patient struct {
	net.Conn
	until []time.Time
}

func (p *patient) SetDeadline(t time.Time) error { p.until = append(p.until, t); return nil }
func (p *patient) Write(b []byte) (int, error)   { return len(b), nil }

// TestAConnectionOutlivesItsGreeting: the greeting has a deadline, and what raft sends afterwards has its own.
func TestAConnectionOutlivesItsGreeting(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	conn := &patient{}
	if err := (&introducedConn{Conn: conn}).introduce(ctx, greetAll); err != nil {
		t.Fatal(err)
	}
	end, _ := ctx.Deadline()
	if len(conn.until) != 2 || !conn.until[0].Equal(end) || !conn.until[1].IsZero() {
		t.Errorf("the deadlines were %v, want %v and none", conn.until, end)
	}
}
