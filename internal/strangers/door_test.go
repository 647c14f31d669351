package strangers

import (
	"crypto/tls"
	"fmt"
	"net"
	"testing"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// visitor is a connection that remembers whether it was closed.
type visitor struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (v *visitor) RemoteAddr() net.Addr { return v.from }
func (v *visitor) Close() error         { v.closed = true; return nil }

// arrivals is a listener, of which each connection comes from the address that the test says.
type arrivals struct {
	net.Listener
	all []*visitor
}

func (a *arrivals) Accept() (net.Conn, error) { return a.all[len(a.all)-1], nil }

// street is a door and who came to it.
type street struct {
	*testing.T
	door     *Door
	arrivals *arrivals
}

func newStreet(t *testing.T, limit int) *street {
	return &street{t, NewSharedDoor(limit, limit), &arrivals{}}
}

func (s *street) come(from string) net.Conn {
	s.Helper()
	address, err := net.ResolveTCPAddr("tcp", from)
	if err != nil {
		s.Fatal(err)
	}
	s.arrivals.all = append(s.arrivals.all, &visitor{from: address})
	c, err := s.door.Listener(s.arrivals).Accept()
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// gone says who was closed, by the order of arrival.
func (s *street) gone(want ...int) {
	s.Helper()
	var got []int
	for i, v := range s.arrivals.all {
		if v.closed {
			got = append(got, i)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("closed: %v, want %v", got, want)
	}
}

// TestTheFirstStrangerGoes: whoever comes is let in, and who is known stays.
func TestTheFirstStrangerGoes(t *testing.T) {
	s := newStreet(t, 4) // two for one address
	const from = "192.0.2.1:1000"
	Known(tls.Server(s.come(from), nil)) // 0 shows a certificate
	s.come(from)
	third := s.come(from)
	s.gone()
	s.come(from)
	s.gone(1)
	if err := third.Close(); err != nil || third.Close() != nil {
		t.Error(err)
	}
	s.come(from) // in the place of who went by himself
	s.gone(1, 2)
	s.come(from)
	s.gone(1, 2, 3)
	if s.door.strangers.all.Len() != 2 {
		t.Errorf("%d strangers", s.door.strangers.all.Len())
	}
	Known(&visitor{}) // came in by another way
}

// TestOneAddressDoesNotPushOutOthers: who floods a port loses his own connections, until there are too many addresses.
func TestOneAddressDoesNotPushOutOthers(t *testing.T) {
	s := newStreet(t, 4)
	s.come("192.0.2.2:1")
	for port := range 20 {
		s.come(fmt.Sprint("192.0.2.1:", 1000+port))
	}
	if s.arrivals.all[0].closed || s.door.strangers.all.Len() > 4 {
		t.Errorf("the only one of its address is gone, or there are %d strangers", s.door.strangers.all.Len())
	}
	for host := 10; host < 16; host++ {
		s.come(fmt.Sprintf("192.0.2.%d:1", host))
	}
	if s.door.strangers.all.Len() != 4 || !s.arrivals.all[0].closed || len(s.door.strangers.of) != 4 {
		t.Errorf("%d strangers of %d addresses", s.door.strangers.all.Len(), len(s.door.strangers.of))
	}
}

// TestATenantHasHisShare: who is known by a name loses his own connections, the oldest first; others, and strangers, lose none for it.
func TestATenantHasHisShare(t *testing.T) {
	s := newStreet(t, 8)
	tenant := func(name string) shares.Holder { return shares.Holder{Name: name, Privileged: name == "admin"} }
	var came []net.Conn
	for _, name := range []string{"otto", "admin", "anna", "anna", "anna"} { // three are anna's, and four are left
		came = append(came, s.come("192.0.2.1:1"))
		KnownAs(tls.Server(came[len(came)-1], nil), tenant(name))
	}
	s.come("192.0.2.3:1")                          // 5, a stranger
	KnownAs(came[3], tenant("anna"))               // it is hers already
	KnownAs(s.come("192.0.2.1:1"), tenant("anna")) // 6
	s.gone()
	KnownAs(s.come("192.0.2.1:1"), tenant("anna"))
	s.gone(2)
	KnownAs(s.come("192.0.2.1:1"), tenant("anna"))
	s.gone(2, 3)
	for range 20 {
		KnownAs(s.come("192.0.2.1:1"), tenant("admin"))
	}
	KnownAs(came[4], tenant("otto")) // another's now
	KnownAs(came[0], tenant("admin"))
	s.gone(2, 3)
	if anna, otto := s.door.tenants.of["anna"].Len(), s.door.tenants.of["otto"].Len(); anna != 3 || otto != 1 {
		t.Errorf("anna has %d, otto %d", anna, otto)
	}
	door := NewDoor(1) // of a port without tenants
	KnownAs(door.Enter(&visitor{from: &net.TCPAddr{}}), tenant("anna"))
	if door.strangers.all.Len() != 0 {
		t.Error("known, and a stranger")
	}
}

// TestSources: the addresses of one machine are one source.
func TestSources(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:1":            "192.0.2.1",
		"[::ffff:192.0.2.1]:1":   "192.0.2.1",
		"[2001:db8::1]:1":        "2001:db8::/64",
		"[2001:db8::ffff:1]:2":   "2001:db8::/64",
		"[fe80::1%lo]:2":         "fe80::/64",
		"[2001:db8:0:1::ffff]:2": "2001:db8:0:1::/64",
	} {
		address, err := net.ResolveTCPAddr("tcp", from)
		if err != nil {
			t.Fatal(err)
		}
		if got := sourceOf(&visitor{from: address}); got != want {
			t.Errorf("%s is %s, want %s", from, got, want)
		}
	}
	if got := sourceOf(&visitor{from: &net.UnixAddr{}}); got != "others" {
		t.Errorf("a socket without an address is of %s", got)
	}
}

// TestHalves: a connection of a door ends in one direction, if the one below does.
func TestHalves(t *testing.T) {
	c := NewDoor(1).Enter(&visitor{})
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err == nil {
		t.Error("it has no halves")
	}
}

func TestLimitIsAPartOfTheFiles(t *testing.T) {
	if limit := Limit(); limit < 1 || limit > maxStrangers {
		t.Errorf("limit = %d", limit)
	}
}

// TestForgotten: a client that was known and is not any more makes room like others, and one that has gone does not come back.
func TestForgotten(t *testing.T) {
	s := newStreet(t, 4)
	const from = "192.0.2.1:1000"
	first := s.come(from)
	Known(first)
	s.come(from)
	s.come(from)
	s.gone()
	Forgotten(first)
	s.gone(1)
	Forgotten(first) // is one already
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	Forgotten(first)
	if s.door.strangers.all.Len() != 1 {
		t.Errorf("%d strangers", s.door.strangers.all.Len())
	}
}
