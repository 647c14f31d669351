package strangers

import (
	"crypto/tls"
	"net"
	"testing"
)

// visitor is a connection that remembers whether it was closed.
type visitor struct {
	net.Conn
	closed bool
}

func (v *visitor) Close() error { v.closed = true; return nil }

// queue accepts what is in it.
type queue struct {
	net.Listener
	conns []net.Conn
}

func (q *queue) Accept() (net.Conn, error) {
	next := q.conns[0]
	q.conns = q.conns[1:]
	return next, nil
}

// TestTheFirstStrangerGoes: whoever comes is let in, and who is known stays.
func TestTheFirstStrangerGoes(t *testing.T) {
	var visitors []*visitor
	q := &queue{}
	for range 6 {
		visitors = append(visitors, &visitor{})
		q.conns = append(q.conns, visitors[len(visitors)-1])
	}
	door := NewDoor(2)
	l := door.Listener(q)
	accept := func() net.Conn {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	closed := func() (all [6]bool) {
		for i, v := range visitors {
			all[i] = v.closed
		}
		return all
	}
	Known(tls.Server(accept(), nil)) // 0 shows a certificate
	accept()
	third := accept()
	if got := closed(); got != [6]bool{} {
		t.Errorf("closed: %v", got)
	}
	accept()
	if got := closed(); got != [6]bool{1: true} {
		t.Errorf("the first stranger goes, not who is known: %v", got)
	}
	if err := third.Close(); err != nil || third.Close() != nil {
		t.Error(err)
	}
	accept() // in the place of who went by himself
	if got := closed(); got != [6]bool{1: true, 2: true} {
		t.Errorf("closed: %v", got)
	}
	accept()
	if got := closed(); got != [6]bool{1: true, 2: true, 3: true} {
		t.Errorf("closed: %v", got)
	}
	if door.strangers.Len() != 2 {
		t.Errorf("%d strangers", door.strangers.Len())
	}
	Known(&visitor{}) // came in by another way
}

func TestLimitIsAPartOfTheFiles(t *testing.T) {
	if limit := Limit(); limit < 1 || limit > maxStrangers {
		t.Errorf("limit = %d", limit)
	}
}
