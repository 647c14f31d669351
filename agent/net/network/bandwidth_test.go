package network

import (
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/bandwidth"
)

// TestBandwidth: what goes beyond a pod's limits waits, in both directions, and nothing of it stays behind the pod.
func TestBandwidth(t *testing.T) {
	n := newNetwork(t)
	const ingress, egress = 800_000, 400_000
	p := startPodAs(t, n, Pod{ID: "limited", Bandwidth: bandwidth.Limits{Ingress: ingress, Egress: egress}})
	free := startPod(t, n, "free")
	if got := p.say(free.endpoint.Address.String() + ":80"); got != p.endpoint.Address.String() {
		t.Errorf("the limited pod is seen as %s", got)
	}
	flood(t, p.endpoint.Address.String())
	check(t, inNamespaceOf(p.command.Process.Pid, func() error { flood(t, free.endpoint.Address.String()); return nil }))
	expectDelays(t, p.endpoint.HostInterface, ingress)
	expectDelays(t, bandwidth.Device(p.endpoint.HostInterface), egress)
	if _, err := netlink.LinkByName(bandwidth.Device(free.endpoint.HostInterface)); err == nil {
		t.Error("a pod without limits has a device that delays")
	}
	check(t, n.Detach(p.endpoint))
	if _, err := netlink.LinkByName(bandwidth.Device(p.endpoint.HostInterface)); err == nil {
		t.Error("the device that delays is still there")
	}
	alone := startPodAs(t, n, Pod{ID: "alone", Bandwidth: bandwidth.Limits{Egress: egress}}).endpoint
	for _, want := range []string{"device " + bandwidth.Device(alone.HostInterface), ""} {
		if removed, err := bandwidth.RemoveAll(len(alone.HostInterface)); err != nil || strings.Join(removed, " ") != want {
			t.Errorf("removed %q, %v, want %q", removed, err, want)
		}
	}
	for _, least := range []bandwidth.Limits{{Ingress: 1_000, Egress: 1_000}, {Ingress: 1e15, Egress: 1e15}} { // the kernel takes them
		check(t, n.Detach(startPodAs(t, n, Pod{ID: "edge", Bandwidth: least}).endpoint))
	}
}

// flood sends more than any burst of the test's limits.
func flood(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("udp", net.JoinHostPort(address, "9"))
	check(t, err)
	defer conn.Close()
	for range 50 {
		_, _ = conn.Write(make([]byte, 1400)) // refused: nobody listens there
	}
}

func expectDelays(t *testing.T, name string, bits uint64) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	check(t, err)
	queues, err := netlink.QdiscList(link)
	check(t, err)
	for _, q := range queues {
		if limit, ok := q.(*netlink.Tbf); ok {
			if limit.Rate != bits/8 || limit.Statistics == nil || limit.Statistics.Queue.Overlimits == 0 {
				t.Errorf("%s: %+v delayed nothing: %+v", name, limit, limit.Statistics)
			}
			return
		}
	}
	t.Errorf("%s has no limit: %v", name, queues)
}
