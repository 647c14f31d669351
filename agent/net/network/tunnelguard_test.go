package network

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// TestWhoseTunnelPacketsAreTaken: what comes by VXLAN passes for a pod of another node, so only nodes may send it, and no pod
// to any node.
func TestWhoseTunnelPacketsAreTaken(t *testing.T) {
	n := newNetwork(t)
	machine, pod := strangerBehind(t, "198.51.100.2/24", "outer0"), startPod(t, n, "inside")
	t.Cleanup(func() {
		if err := unguardTunnel("sptest0"); err != nil {
			t.Error(err)
		}
		listening[plan.VXLANPort].Close()
		delete(listening, plan.VXLANPort)
	})
	here := func() string { return fmt.Sprint(countDatagrams(plan.VXLANPort)) }
	there := func() string { return machine.say("count tunnel") }
	here()
	there()
	own, outside := "198.51.100.1", machine.endpoint.Address.String()
	for _, c := range []struct {
		name     string
		nodes    []netip.Addr
		from     *testPod
		to       string
		count    func() string
		arriving string
	}{
		{"from a stranger", nil, machine, own, here, "0"},
		{"from a node", []netip.Addr{machine.endpoint.Address}, machine, own, here, "1"},
		{"from a pod to its node", nil, pod, own, here, "0"},
		{"from a pod whose address a node tells", []netip.Addr{pod.endpoint.Address}, pod, own, here, "0"},
		{"from a pod to another node", []netip.Addr{machine.endpoint.Address}, pod, outside, there, "0"},
		{"from a pod to a stranger", nil, pod, outside, there, "1"},
	} {
		if err := guardTunnel("sptest0", c.nodes); err != nil {
			t.Fatal(err)
		}
		if got := c.from.say(fmt.Sprintf("send %s:%d", c.to, plan.VXLANPort)); got != "" {
			t.Fatalf("%s: %s", c.name, got)
		}
		if got := c.count(); got != c.arriving {
			t.Errorf("%s: %s datagrams arrive, want %s", c.name, got, c.arriving)
		}
	}
}

// send sends a datagram.
func send(address string) error {
	conn, err := net.Dial("udp4", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	return err
}
