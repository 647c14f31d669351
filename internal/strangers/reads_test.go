package strangers

import (
	"net"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// talker brings five bytes with each read.
type talker struct{ net.Conn }

func (talker) Read(p []byte) (int, error) { return copy(p, "hello"), nil }
func (talker) RemoteAddr() net.Addr       { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 5000} }

// TestReadsAreTold: what comes in counts for whose the connection is at that time, each read something of its own, and the handshake
// with the first bytes.
func TestReadsAreTold(t *testing.T) {
	type told struct {
		whose shares.Holder
		bytes int
		young bool
	}
	var got []told
	door := NewSharedDoor(10, 10)
	door.Reads = func(whose shares.Holder, bytes int, young bool) { got = append(got, told{whose, bytes, young}) }
	c := door.Enter(talker{})
	read := func() { _, _ = c.Read(make([]byte, 10)) }
	anna, admin := shares.Holder{Name: "user anna"}, shares.Holder{Name: "user admin", Privileged: true}
	read()
	KnownAs(c, anna)
	read()
	KnownAs(c, admin)
	read()
	Forgotten(c)
	read()
	Known(c)
	read()
	c.(*conn).has = youngBytes
	read()
	stranger := shares.Stranger("192.0.2.7")
	const each = 5 + readBytes
	want := []told{
		{stranger, each + handshakeBytes, true}, {anna, each, true}, {shares.Holder{Privileged: true}, each, true}, {stranger, each, true},
		{shares.Holder{Privileged: true}, each, true}, {shares.Holder{Privileged: true}, each, false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
