package hostfirewall

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/agent/net/network/wireguard"
)

const (
	bridge             = "testbridge"
	openPort, shutPort = 8001, 8002
	answerTime         = 5 * time.Second
)

// TestMain runs the tests in a network namespace of their own, which is the node.
func TestMain(m *testing.M) {
	wireguard.ReexecMain()
	networktest.Main(m)
}

// neighbour is one of the node's, which has these addresses on the link.
type neighbour struct {
	*networktest.Neighbour
	t    *testing.T
	node []netip.Addr
}

// newNeighbour makes the link of this name; each pair are the addresses of the node and the neighbour.
func newNeighbour(t *testing.T, name string, pairs ...[2]string) *neighbour {
	t.Helper()
	n := &neighbour{Neighbour: networktest.NewNeighbour(t, name), t: t}
	for _, pair := range pairs {
		node, there := netip.MustParsePrefix(pair[0]), netip.MustParsePrefix(pair[1])
		n.Address(node, there)
		n.node = append(n.node, node.Addr())
	}
	return n
}

// serve echoes at both ports, on all addresses of the node.
func serve(t *testing.T) {
	t.Helper()
	for _, port := range []int{openPort, shutPort} {
		at := net.JoinHostPort("", strconv.Itoa(port))
		listener, err := net.Listen("tcp", at)
		packets, err2 := net.ListenPacket("udp", at)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = listener.Close(), packets.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("x"))
				_ = conn.Close()
			}
		}()
		go func() {
			buffer := make([]byte, 8)
			for {
				n, from, err := packets.ReadFrom(buffer)
				if err != nil {
					return
				}
				_, _ = packets.WriteTo(buffer[:n], from)
			}
		}()
	}
}

// ask returns what came of a question to the node: nil, or unix.ECONNREFUSED at once.
func (n *neighbour) ask(protocol string, to netip.Addr, port int) error {
	conn, err := networktest.Inside(n.Neighbour, func() (net.Conn, error) {
		return net.DialTimeout(protocol, netip.AddrPortFrom(to, uint16(port)).String(), answerTime)
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	if protocol == "udp" {
		_, err = conn.Write([]byte("x"))
	}
	if err == nil {
		_, err = conn.Read(make([]byte, 8))
	}
	return err
}

// expect asks for both ports by both protocols at all addresses.
func (n *neighbour) expect(who string, shut bool) {
	n.t.Helper()
	for _, to := range n.node {
		for _, protocol := range []string{"tcp", "udp"} {
			if err := n.ask(protocol, to, openPort); err != nil {
				n.t.Errorf("%s, %s, open port of %s: %v", who, protocol, to, err)
			}
			if err := n.ask(protocol, to, shutPort); (err != nil) != shut || shut && !errors.Is(err, unix.ECONNREFUSED) {
				n.t.Errorf("%s, %s, other port of %s: %v, refused should be %v", who, protocol, to, err, shut)
			}
		}
	}
}

// TestPacketsOfPods are judged by their interface or their address, and those of others are not. What the node begins is answered.
func TestPacketsOfPods(t *testing.T) {
	if missing := networktest.Missing(); missing != "" {
		t.Skip(missing)
	}
	here := newNeighbour(t, bridge, [2]string{"10.42.0.1/24", "10.42.0.2/24"}, [2]string{"fd42::1/64", "fd42::2/64"})
	foreign := newNeighbour(t, "elsewhere", [2]string{"10.42.1.1/24", "10.42.1.2/24"}, [2]string{"fd42:0:0:1::1/64", "fd42:0:0:1::2/64"})
	machine := newNeighbour(t, "machine", [2]string{"192.0.2.1/24", "192.0.2.2/24"}, [2]string{"2001:db8::1/64", "2001:db8::2/64"})
	serve(t)
	ranges := []netip.Prefix{netip.MustParsePrefix("10.42.0.0/16"), netip.MustParsePrefix("fd42::/48")}
	open := []Port{TCP(openPort), UDP(openPort)}
	table := NewTable(bridge)
	here.expect("a pod without a firewall", false)
	if exists, err := table.Exists(); exists || err != nil {
		t.Errorf("exists at first: %v, %v", exists, err)
	}
	if err := table.Apply(ranges, open); err != nil {
		t.Fatal(err)
	}
	here.expect("a pod of this node", true)
	if exists, err := NewTable(bridge).Exists(); !exists || err != nil {
		t.Errorf("another process finds it: %v, %v", exists, err)
	}
	foreign.expect("a pod of another node", true)
	machine.expect("a machine", false)
	here.answersTheNode()

	if err := table.Apply(ranges, append(open, TCP(shutPort), UDP(shutPort))); err != nil {
		t.Fatal(err)
	}
	here.expect("after a change", false)
	if err := errors.Join(table.Apply(ranges, open), NewTable(bridge).Clear(), NewTable(bridge).Clear()); err != nil {
		t.Fatal(err)
	}
	if intact, err := table.Intact(); intact || err != nil {
		t.Errorf("intact without its tables: %v, %v", intact, err)
	}
	here.expect("a pod after the firewall", false)
	if err := table.Apply(ranges, open); err != nil {
		t.Fatal(err)
	}
	if intact, err := table.Intact(); !intact || err != nil {
		t.Errorf("made again: %v, %v", intact, err)
	}
	here.expect("after it was made again", true)
	networktest.Listable(t)
	if removed, err := network.Uninstall(bridge); err != nil || len(removed) != 3 { // two tables and the link
		t.Errorf("uninstalled %v, %v", removed, err)
	}
}

// TestAddressesOfTheLink: in a cluster of IPv4 pods have addresses of IPv6 too, and so has the bridge: those of the link.
func TestAddressesOfTheLink(t *testing.T) {
	if missing := networktest.Missing(); missing != "" {
		t.Skip(missing)
	}
	here := newNeighbour(t, bridge, [2]string{"10.42.0.1/24", "10.42.0.2/24"}, [2]string{"fe80::1/64", "fe80::2/64"})
	here.node[1] = here.node[1].WithZone("eth0")
	serve(t)
	table := NewTable(bridge)
	if err := table.Apply([]netip.Prefix{netip.MustParsePrefix("10.42.0.0/16")}, []Port{TCP(openPort), UDP(openPort)}); err != nil {
		t.Fatal(err)
	}
	here.expect("a pod of a cluster of IPv4", true)
	if err := nft.DropTable(ipfamily.V6.Tables, table.name()); err != nil {
		t.Fatal(err)
	}
	exists, err := NewTable(bridge).Exists()
	intact, err2 := table.Intact()
	if err := errors.Join(err, err2); err != nil || exists || intact {
		t.Errorf("without the table of IPv6 they exist %v, and are intact %v: %v", exists, intact, err)
	}
	if err := table.Clear(); err != nil {
		t.Fatal(err)
	}
}

// answersTheNode: the node's own connection to a port of the pod's gets its answers.
func (n *neighbour) answersTheNode() {
	n.t.Helper()
	listener, err := networktest.Inside(n.Neighbour, func() (net.Listener, error) { return net.Listen("tcp", "10.42.0.2:80") })
	n.Check(err)
	defer listener.Close()
	conn, err := net.DialTimeout("tcp", "10.42.0.2:80", answerTime)
	if err != nil {
		n.t.Errorf("the node does not reach a pod: %v", err)
		return
	}
	_ = conn.Close()
}

// TestTooManyPorts leaves what was there.
func TestTooManyPorts(t *testing.T) {
	many := make([]Port, openMax+1)
	if err := NewTable(bridge).Apply(nil, many); !errors.Is(err, errTooMany) {
		t.Error(err)
	}
}
