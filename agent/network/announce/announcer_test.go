package announce

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"testing"
)

func TestAnswersToARP(t *testing.T) {
	own, other := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	ip, asker, unknown := netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.78")
	a := New(netip.MustParseAddr("192.0.2.1"), slog.New(slog.DiscardHandler))
	a.Set([]netip.Addr{ip})
	question := arpFrame(arpRequest, other, asker, broadcast, ip)
	reply := arpFrame(arpReply, own, ip, other, asker)
	for _, c := range []struct {
		name  string
		frame []byte
		want  []byte
	}{
		{"a question", question, reply},
		{"for another address", arpFrame(arpRequest, other, asker, broadcast, unknown), nil},
		{"an answer", arpFrame(arpReply, other, asker, own, ip), nil},
		{"cut off", question[:len(question)-1], nil},
		{"nothing", nil, nil},
		{"our own", arpFrame(arpRequest, own, ip, broadcast, ip), nil},
		{"still ours", question, reply},
		{"another machine announces it", arpFrame(arpRequest, other, ip, broadcast, ip), nil},
		{"no longer ours", question, nil},
	} {
		if got := a.answer(c.frame, own); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, want %x", c.name, got, c.want)
		}
	}
	a.Set([]netip.Addr{ip})
	if got := a.answer(question, own); !bytes.Equal(got, reply) {
		t.Errorf("elected again: %x", got)
	}
}

func FuzzParseARP(f *testing.F) {
	f.Add(arpFrame(arpRequest, broadcast, netip.MustParseAddr("192.0.2.2"), broadcast, netip.MustParseAddr("192.0.2.3")))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if said, ok := parseARP(frame); ok && (!said.senderIP.Is4() || len(said.sender) != hardwareBytes) {
			t.Error(said)
		}
	})
}
