package plan

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// TestRandomWorlds: the plan and the oracle agree on policies that nobody thought of, also where the pods are on two nodes, each of
// which judges for its own.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(drawPolicies(random)...)
		outside := &Pod{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}}
		whole, one, other := Of(w), Of(onNode(w, 0)), Of(onNode(w, 1))
		parts := []*Table{whole.Of(netip.Addr.Is4), whole.Of(netip.Addr.Is6)}
		packets := 0
		everyPacket(w, func(from, to *Pod, protocol string, packet Packet) {
			for i, ends := range [][2]*Pod{{from, to}, {outside, to}, {from, outside}, {from, to}, {outside, to}, {from, outside}} {
				family := i / 3
				packet.From, packet.To = ends[0].Addresses[family], ends[1].Addresses[family]
				want := oracle(w, ends[0], ends[1], family, packet.Protocol, packet.Port)
				if whole.Allows(packet) != want || (one.Allows(packet) && other.Allows(packet)) != want || parts[family].Allows(packet) != want {
					t.Errorf("seed %d: %s -> %s %s/%d: want %v, one node %v, two %v %v, its family's part %v", seed, packet.From, packet.To, protocol,
						packet.Port, want, whole.Allows(packet), one.Allows(packet), other.Allows(packet), parts[family].Allows(packet))
				}
				packets++
			}
		})
		checkNames(t, whole)
		if again := Of(w); !reflect.DeepEqual(whole, again) {
			t.Errorf("seed %d: the same world gave another plan", seed)
		}
		if t.Failed() || packets == 0 {
			return
		}
	}
}

// onNode has every second pod here.
func onNode(w World, which int) World {
	w.Pods = slices.Clone(w.Pods)
	for i, p := range w.Pods {
		there := *p
		there.Here = i%2 == which
		w.Pods[i] = &there
	}
	return w
}

func drawPolicies(r *rand.Rand) (all []*networkingv1.NetworkPolicy) {
	for range 1 + r.IntN(5) {
		var changes []func(*networkingv1.NetworkPolicySpec)
		for range 1 + r.IntN(3) {
			switch r.IntN(5) {
			case 0:
				changes = append(changes, denyIngress)
			case 1:
				changes = append(changes, denyEgress)
			case 2, 3:
				changes = append(changes, ingress(drawPeers(r), drawPorts(r)...))
			case 4:
				changes = append(changes, egress(drawPeers(r), drawPorts(r)...))
			}
		}
		all = append(all, policy(drawFrom(r, "x", "y", "z"), drawFrom(r, "", "a", "b,c", "!a"), changes...))
	}
	return all
}

func drawFrom[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func drawPeers(r *rand.Rand) (peers []peer) {
	for range r.IntN(3) {
		cidr := fmt.Sprintf("10.42.%d.%d/%d", r.IntN(4), r.IntN(8), 20+r.IntN(13))
		masked := netip.MustParsePrefix(cidr).Masked()
		part := netip.PrefixFrom(masked.Addr(), min(32, masked.Bits()+r.IntN(4))).String()
		cidr6 := netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("fd42::%d:%d", r.IntN(4), r.IntN(8))), 100+r.IntN(29)).Masked()
		part6 := netip.PrefixFrom(cidr6.Addr(), min(128, cidr6.Bits()+r.IntN(4))).String()
		peers = append(peers, drawFrom(r, block(cidr6.String()), block(cidr6.String(), part6), block("::/0", part6), pods(drawFrom(r, "", "a", "!b")), namespaces(drawFrom(r, "", "x", "y,z")),
			both(drawFrom(r, "", "y"), drawFrom(r, "b", "a,c")), block(cidr), block(masked.String(), part), block("0.0.0.0/0", "10.42.1.3/32", part)))
	}
	return peers
}

func drawPorts(r *rand.Rand) (ports []port) {
	for range r.IntN(3) {
		protocol := drawFrom(r, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		ports = append(ports, drawFrom(r, on(protocol), on(protocol, 80), on(protocol, 81, 90), on(protocol, "serve-80-tcp"), on(protocol, "serve-81-udp")))
	}
	return ports
}

func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		cidr   string
		except []string
		want   string
	}{
		{"10.0.0.0/8", nil, "[{10.0.0.0 10.255.255.255}]"},
		{"0.0.0.0/0", nil, "[{0.0.0.0 255.255.255.255}]"},
		{"0.0.0.0/0", []string{"128.0.0.0/1"}, "[{0.0.0.0 127.255.255.255}]"},
		{"0.0.0.0/0", []string{"0.0.0.0/0"}, "[]"},
		{"10.0.0.0/24", []string{"10.0.0.128/25", "10.0.0.0/32", "10.0.0.129/32"}, "[{10.0.0.1 10.0.0.127}]"},
		{"10.0.0.0/30", []string{"10.0.0.1/32"}, "[{10.0.0.0 10.0.0.0} {10.0.0.2 10.0.0.3}]"},
		{"255.255.255.255/32", nil, "[{255.255.255.255 255.255.255.255}]"},
		{"10.0.0.0/24", []string{"11.0.0.0/8"}, "[{10.0.0.0 10.0.0.255}]"},
		{"fd00::/8", []string{"fd00::/16"}, "[{fd01:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}]"},
		{"::/0", []string{"8000::/1"}, "[{:: 7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}]"},
		{"ffff::/16", []string{"ffff::/17", "10.0.0.0/8"}, "[{ffff:8000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}]"},
	} {
		var except []netip.Prefix
		for _, e := range c.except {
			except = append(except, netip.MustParsePrefix(e))
		}
		if got := fmt.Sprint(blocksOf(netip.MustParsePrefix(c.cidr), except)); got != c.want {
			t.Errorf("%s without %v: %s, want %s", c.cidr, c.except, got, c.want)
		}
	}
	both := append(blocksOf(netip.MustParsePrefix("10.0.1.0/24"), nil), blocksOf(netip.MustParsePrefix("10.0.0.0/24"), nil)...)
	both = append(both, blocksOf(netip.MustParsePrefix("::/0"), nil)...)
	if got := fmt.Sprint(merged(append(both, both...))); got != "[{10.0.0.0 10.0.1.255} {:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}]" {
		t.Errorf("merged: %s", got)
	}
}

// FuzzBlocks: a block has the addresses of its range that no exception has.
func FuzzBlocks(f *testing.F) {
	f.Add(false, uint32(0x0a000000), 8, uint32(0x0a010000), 16, uint32(0x0a0100ff), 31, uint32(0x0a010001))
	f.Add(true, uint32(0x0a000000), 8, uint32(0x0a010000), 16, uint32(0x0a0100ff), 31, uint32(0x0a010001))
	f.Fuzz(func(t *testing.T, six bool, base uint32, bits int, e1 uint32, bits1 int, e2 uint32, bits2 int, probe uint32) {
		prefix := func(n uint32, bits int) netip.Prefix {
			address := address(six, n)
			return netip.PrefixFrom(address, address.BitLen()-32+int(uint(bits)%33))
		}
		cidr, except, probed := prefix(base, bits), []netip.Prefix{prefix(e1, bits1), prefix(e2, bits2)}, address(six, probe)
		want := cidr.Contains(probed) && !except[0].Contains(probed) && !except[1].Contains(probed)
		got := slices.ContainsFunc(merged(blocksOf(cidr, except)), func(b Block) bool {
			return b.First.Compare(probed) <= 0 && probed.Compare(b.Last) <= 0
		})
		if got != want {
			t.Errorf("%s without %v has %s: %v", cidr, except, probed, got)
		}
	})
}

// address is one of the 2^32 of IPv4, or of the last range of IPv6.
func address(six bool, n uint32) netip.Addr {
	four := [4]byte(binary.BigEndian.AppendUint32(nil, n))
	if !six {
		return netip.AddrFrom4(four)
	}
	sixteen := netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff::").As16()
	copy(sixteen[12:], four[:])
	return netip.AddrFrom16(sixteen)
}
