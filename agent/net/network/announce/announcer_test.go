package announce

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnswersToARP(t *testing.T) {
	own, other := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	ip, asker, unknown := netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.78")
	a := New(netip.MustParseAddr("192.0.2.1"), netip.Addr{}, slog.New(slog.DiscardHandler))
	a.Set([]netip.Addr{ip})
	self := self{hardware: own}
	question := arpFrame(arpRequest, other, asker, broadcast, ip)
	reply := arpFrame(arpReply, own, ip, other, asker)
	answers(t, a.first, self, []exchange{
		{"a question", question, reply},
		{"for another address", arpFrame(arpRequest, other, asker, broadcast, unknown), nil},
		{"an answer", arpFrame(arpReply, other, asker, own, ip), nil},
		{"cut off", question[:len(question)-1], nil},
		{"nothing", nil, nil},
		{"our own", arpFrame(arpRequest, own, ip, broadcast, ip), nil},
		{"still ours", question, reply},
		{"another machine announces it", arpFrame(arpRequest, other, ip, broadcast, ip), nil},
		{"no longer ours", question, nil},
	})
	a.Set([]netip.Addr{ip})
	answers(t, a.first, self, []exchange{{"elected again", question, reply}})
}

func TestAnswersToNDP(t *testing.T) {
	here := self{hardware: net.HardwareAddr{2, 0, 0, 0, 0, 1}, ip: netip.MustParseAddr("2001:db8::1")}
	there := self{hardware: net.HardwareAddr{2, 0, 0, 0, 0, 2}, ip: netip.MustParseAddr("2001:db8::2")}
	ip, unknown := netip.MustParseAddr("2001:db8::77"), netip.MustParseAddr("2001:db8::78")
	nobody := self{hardware: there.hardware, ip: netip.IPv6Unspecified()}
	a := New(netip.Addr{}, here.ip, slog.New(slog.DiscardHandler))
	a.Set([]netip.Addr{ip})
	question, reply := there.solicit(ip), here.advertise(ip, overrideFlag|solicitedFlag, there.ip, there.hardware)
	changed := func(at int, to byte) []byte {
		frame := bytes.Clone(question)
		frame[at] = to
		return frame
	}
	const packet, message = etherHeaderBytes, etherHeaderBytes + ipv6HeaderBytes
	answers(t, a.second, here, []exchange{
		{"a question", question, reply},
		{"with a frame's filling", append(bytes.Clone(question), 0, 0, 0, 0), reply},
		{"for another address", there.solicit(unknown), nil},
		{"who wants the address", nobody.solicit(ip), ndp{}.announcement(here, ip)},
		{"cut off", question[:len(question)-1], nil},
		{"nothing", nil, nil},
		{"not of IPv6", changed(13, 0), nil},
		{"not of ICMP", changed(packet+nextHeaderAt, unix.IPPROTO_UDP), nil},
		{"through a router", changed(packet+7, hopLimit-1), nil},
		{"another message", changed(message, 134), nil},
		{"damaged", changed(message+2, question[message+2]+1), nil},
		{"our own", ndp{}.announcement(here, ip), nil},
		{"still ours", question, reply},
		{"another machine announces another", ndp{}.announcement(there, unknown), nil},
		{"still ours then", question, reply},
		{"another machine announces it", ndp{}.announcement(there, ip), nil},
		{"no longer ours", question, nil},
	})
	a.Set([]netip.Addr{ip})
	answers(t, a.second, here, []exchange{{"elected again", question, reply}})
}

// exchange is a frame and what is answered.
type exchange struct {
	name        string
	frame, want []byte
}

func answers(t *testing.T, s *speaker, own self, all []exchange) {
	t.Helper()
	for _, e := range all {
		if got := s.answer(e.frame, own); !bytes.Equal(got, e.want) {
			t.Errorf("%s: %x, want %x", e.name, got, e.want)
		}
	}
}

// solicit asks for an address.
func (s self) solicit(ip netip.Addr) []byte {
	message := append([]byte{solicitation, 0, 0, 0, 0, 0, 0, 0}, ip.AsSlice()...)
	if !s.ip.IsUnspecified() {
		message = append(append(message, sourceLinkOption, 1), s.hardware...)
	}
	group := ndp{}.group(ip)
	return s.send(message, group, groupHardware(group))
}

func FuzzParseARP(f *testing.F) {
	f.Add(arpFrame(arpRequest, broadcast, netip.MustParseAddr("192.0.2.2"), broadcast, netip.MustParseAddr("192.0.2.3")))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if said, ok := (arp{}).parse(frame); ok && (!said.has.Is4() || len(said.sender) != hardwareBytes) {
			t.Error(said)
		}
	})
}

func FuzzParseNDP(f *testing.F) {
	own := self{hardware: net.HardwareAddr{2, 0, 0, 0, 0, 1}, ip: netip.MustParseAddr("2001:db8::1")}
	f.Add(own.solicit(netip.MustParseAddr("2001:db8::2")))
	f.Add(ndp{}.announcement(own, netip.MustParseAddr("2001:db8::2")))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if said, ok := (ndp{}).parse(frame); ok && (said.has.IsValid() == said.wants.IsValid() || len(said.sender) != hardwareBytes) {
			t.Error(said)
		}
	})
}
