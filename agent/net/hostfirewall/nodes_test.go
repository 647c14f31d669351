package hostfirewall

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// twoNodes are this namespace, with a pod on its bridge, and one at the other end of a link.
type twoNodes struct {
	t          *testing.T
	pod, other *networktest.Neighbour
	own, peer  plan.Node
}

var clusterPods = []netip.Prefix{netip.MustParsePrefix("10.42.0.0/16"), netip.MustParsePrefix("fd42::/48")}

func newTwoNodes(t *testing.T) *twoNodes {
	n := &twoNodes{t: t, other: networktest.NewNeighbour(t, "link")}
	node := func(name, ip, ip6, pods, pods6 string) plan.Node {
		return plan.Node{Name: name, IP: netip.MustParseAddr(ip), IP6: netip.MustParseAddr(ip6),
			PodCIDR: netip.MustParsePrefix(pods), PodCIDR6: netip.MustParsePrefix(pods6)}
	}
	n.own = node("own", "192.0.2.1", "2001:db8::1", "10.42.0.0/24", "fd42::/64")
	n.peer = node("peer", "192.0.2.2", "2001:db8::2", "10.42.1.0/24", "fd42:0:0:1::/64")
	n.other.Address(netip.PrefixFrom(n.own.IP, 24), netip.PrefixFrom(n.peer.IP, 24))
	n.other.Address(netip.PrefixFrom(n.own.IP6, 64), netip.PrefixFrom(n.peer.IP6, 64))
	n.strict()
	n.connect(n.own)
	n.inPeer(func() { n.strict(); n.connect(n.peer) })
	n.addPod()
	return n
}

func (n *twoNodes) inPeer(do func()) {
	n.t.Helper()
	_, _ = networktest.Inside(n.other, func() (struct{}, error) { do(); return struct{}{}, nil })
}

// strict makes the machine drop what comes by another link than that by which it would answer, as some distributions do.
func (n *twoNodes) strict() {
	for _, of := range []string{"all", "default"} {
		n.other.Check(os.WriteFile("/proc/sys/net/ipv4/conf/"+of+"/rp_filter", []byte("1"), 0))
	}
}

// connect makes a node's bridge.
func (n *twoNodes) connect(node plan.Node) {
	made := network.New(network.Config{Bridge: bridge, StateDir: n.t.TempDir(), Logger: slog.New(slog.NewTextHandler(n.t.Output(), nil)),
		Ranges: network.Ranges{Pods: clusterPods[0], Pods6: clusterPods[1]}})
	n.other.Check(made.SetPodCIDR(node.PodCIDR, node.PodCIDR6))
	if node.Name == n.own.Name {
		n.t.Cleanup(func() {
			_, err := network.Uninstall(bridge)
			n.other.Check(err)
		})
	}
}

// addPod puts a pod on this node's bridge.
func (n *twoNodes) addPod() {
	n.pod = networktest.NewNeighbour(n.t, "pod")
	bridgeLink, err := netlink.LinkByName(bridge)
	n.pod.Check(err)
	n.pod.Check(netlink.LinkSetMaster(n.pod.Link, bridgeLink))
	for _, p := range []string{"10.42.0.2/24", "fd42::2/64"} {
		address := &netlink.Addr{IPNet: networktest.IPNet(netip.MustParsePrefix(p)), Flags: unix.IFA_F_NODAD}
		n.pod.Check(n.pod.Netlink.AddrAdd(n.pod.Ethernet, address))
	}
	for _, gateway := range []string{"10.42.0.1", "fd42::1"} {
		n.pod.Check(n.pod.Netlink.RouteAdd(&netlink.Route{LinkIndex: n.pod.Ethernet.Attrs().Index, Gw: net.ParseIP(gateway)}))
	}
}

// lead makes the ways between the nodes.
func (n *twoNodes) lead(mode plan.Mode) {
	n.t.Helper()
	var ends [2]*network.Routes
	for i, node := range []*plan.Node{&n.own, &n.peer} {
		open := func() {
			routes, err := network.NewRoutes(network.RoutesConfig{Mode: mode, Node: node.Name, IP: node.IP, Bridge: bridge, DataDir: n.t.TempDir()})
			n.other.Check(err)
			ends[i], node.Facts = routes, routes.Facts()
		}
		if i == 0 {
			open()
		} else {
			n.inPeer(open)
		}
	}
	set := func(routes *network.Routes, own, peer plan.Node) {
		n.other.Check(routes.SetPeers(own, []plan.Node{peer}))
		if problems := routes.Problems(); len(problems) > 0 {
			n.t.Fatal(problems)
		}
	}
	set(ends[0], n.own, n.peer)
	n.inPeer(func() { set(ends[1], n.peer, n.own) })
	n.t.Cleanup(func() {
		n.other.Check(ends[0].SetPeers(n.own, nil))
		n.inPeer(func() { n.other.Check(ends[1].SetPeers(n.peer, nil)) })
	})
}

// serveWhoAsks tells at both ports of the peer who has asked.
func (n *twoNodes) serveWhoAsks() {
	n.inPeer(func() {
		for _, port := range []int{openPort, shutPort} {
			at := net.JoinHostPort("", strconv.Itoa(port))
			listener, err := net.Listen("tcp", at)
			packets, err2 := net.ListenPacket("udp", at)
			n.other.Check(errors.Join(err, err2))
			n.t.Cleanup(func() { _, _ = listener.Close(), packets.Close() })
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					fmt.Fprint(conn, netip.MustParseAddrPort(conn.RemoteAddr().String()).Addr().Unmap())
					_ = conn.Close()
				}
			}()
			go func() {
				for {
					_, from, err := packets.ReadFrom(make([]byte, 8))
					if err != nil {
						return
					}
					_, _ = packets.WriteTo([]byte(netip.MustParseAddrPort(from.String()).Addr().Unmap().String()), from)
				}
			}()
		}
	})
}

// whoAsks is what a server at the peer's address says.
func whoAsks(protocol string, to netip.Addr, port int) (string, error) {
	conn, err := net.DialTimeout(protocol, netip.AddrPortFrom(to, uint16(port)).String(), answerTime)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	if protocol == "udp" {
		if _, err := conn.Write([]byte("x")); err != nil {
			return "", err
		}
	}
	text := make([]byte, 64)
	count, err := conn.Read(text)
	return string(text[:count]), err
}

// TestPodsReachAnotherNodeAsPods: whatever the way between the nodes is, the other node sees a pod's own address, so that its firewall
// refuses what pods may not reach. The machine itself is no pod.
func TestPodsReachAnotherNodeAsPods(t *testing.T) {
	if missing := networktest.Missing(); missing != "" {
		t.Skip(missing)
	}
	n := newTwoNodes(t)
	n.serveWhoAsks()
	n.inPeer(func() {
		n.other.Check(NewTable(bridge).Apply(clusterPods, []Port{TCP(openPort), UDP(openPort)}))
	})
	for _, mode := range []plan.Mode{plan.Auto, plan.Routes, plan.VXLAN, plan.WireGuard, plan.Auto} {
		t.Run(string(mode), func(t *testing.T) {
			n.t = t
			n.lead(mode)
			for to, pod := range map[netip.Addr]string{n.peer.IP: "10.42.0.2", n.peer.IP6: "fd42::2"} {
				for _, protocol := range []string{"tcp", "udp"} {
					ask := func(port int) (string, error) {
						return networktest.Inside(n.pod, func() (string, error) { return whoAsks(protocol, to, port) })
					}
					if got, err := ask(openPort); got != pod || err != nil {
						t.Errorf("%s to an open port of %s: the node sees %q, want %s: %v", protocol, to, got, pod, err)
					}
					if got, err := ask(shutPort); !errors.Is(err, unix.ECONNREFUSED) {
						t.Errorf("%s to another port of %s: %q, %v, want it refused", protocol, to, got, err)
					}
					if got, err := whoAsks(protocol, to, shutPort); got == "" || err != nil {
						t.Errorf("the machine, %s to %s: %q, %v", protocol, to, got, err)
					}
				}
			}
		})
	}
}

// TestPodsReachLocalEndpointsOfAnotherNode: a node port with externalTrafficPolicy Local leads a pod of another node to the endpoints of
// the node that it asks, as anybody from outside: what an endpoint elsewhere answers would not come back this way.
func TestPodsReachLocalEndpointsOfAnotherNode(t *testing.T) {
	if missing := networktest.Missing(); missing != "" {
		t.Skip(missing)
	}
	n := newTwoNodes(t)
	n.serveWhoAsks()
	n.lead(plan.Auto)
	const nodePort, tries = 30080, 8
	here := netip.AddrPortFrom(n.peer.IP, openPort)
	n.inPeer(func() {
		translation := network.NewTranslation(network.TranslationConfig{Bridge: bridge})
		translation.SetRanges(network.Ranges{Pods: clusterPods[0]})
		translation.SetPods(n.peer.PodCIDR, netip.Prefix{})
		n.other.Check(translation.Replace([]network.Service{{
			ServiceAddress: network.ServiceAddress{Protocol: unix.IPPROTO_TCP, Address: netip.AddrPortFrom(netip.IPv4Unspecified(), nodePort)},
			External:       true, KeepsSource: true,
			Endpoints: []netip.AddrPort{here, netip.MustParseAddrPort("10.42.7.7:80")}, Outside: []netip.AddrPort{here},
		}}))
	})
	for range tries { // each endpoint is as likely
		got, err := networktest.Inside(n.pod, func() (string, error) { return whoAsks("tcp", n.peer.IP, nodePort) })
		if got != "10.42.0.2" || err != nil {
			t.Fatalf("the endpoint sees %q: %v", got, err)
		}
	}
}
