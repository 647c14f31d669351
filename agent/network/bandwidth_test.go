package network

import (
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestBandwidthOf(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        Bandwidth
		err         string
	}{
		"none":       {},
		"both":       {map[string]string{ingressAnnotation: "10M", egressAnnotation: "1G"}, Bandwidth{10_000_000, 1_000_000_000}, ""},
		"least":      {map[string]string{egressAnnotation: "1k"}, Bandwidth{Egress: 1000}, ""},
		"most":       {map[string]string{ingressAnnotation: "1P"}, Bandwidth{Ingress: 1e15}, ""},
		"too little": {map[string]string{ingressAnnotation: "999"}, Bandwidth{}, "between 1k and 1P"},
		"too much":   {map[string]string{egressAnnotation: "1E"}, Bandwidth{}, "between 1k and 1P"},
		"negative":   {map[string]string{egressAnnotation: "-10M"}, Bandwidth{}, "between 1k and 1P"},
		"no number":  {map[string]string{ingressAnnotation: "fast"}, Bandwidth{}, ingressAnnotation},
		"empty":      {map[string]string{ingressAnnotation: ""}, Bandwidth{}, ingressAnnotation},
	} {
		got, err := BandwidthOf(c.annotations)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestBandwidth: what goes beyond a pod's limits waits, in both directions, and nothing of it stays behind the pod.
func TestBandwidth(t *testing.T) {
	n := newNetwork(t)
	const ingress, egress = 800_000, 400_000
	p := startPodAs(t, n, Pod{ID: "limited", Bandwidth: Bandwidth{ingress, egress}})
	free := startPod(t, n, "free")
	if got := p.say(free.endpoint.Address.String() + ":80"); got != p.endpoint.Address.String() {
		t.Errorf("the limited pod is seen as %s", got)
	}
	flood(t, p.endpoint.Address.String())
	check(t, inNamespaceOf(p.command.Process.Pid, func() error { flood(t, free.endpoint.Address.String()); return nil }))
	expectDelays(t, p.endpoint.HostInterface, ingress)
	expectDelays(t, delayDevice(p.endpoint.HostInterface), egress)
	if _, err := netlink.LinkByName(delayDevice(free.endpoint.HostInterface)); err == nil {
		t.Error("a pod without limits has a device that delays")
	}
	check(t, n.Detach(p.endpoint))
	if _, err := netlink.LinkByName(delayDevice(p.endpoint.HostInterface)); err == nil {
		t.Error("the device that delays is still there")
	}
	alone := startPodAs(t, n, Pod{ID: "alone", Bandwidth: Bandwidth{Egress: egress}}).endpoint
	for _, want := range []string{"device " + delayDevice(alone.HostInterface), ""} {
		if removed, err := uninstallDelays(); err != nil || strings.Join(removed, " ") != want {
			t.Errorf("removed %q, %v, want %q", removed, err, want)
		}
	}
	for _, least := range []Bandwidth{{bandwidthMin, bandwidthMin}, {bandwidthMax, bandwidthMax}} { // the kernel takes them
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
			if limit.Rate != bits/bitsPerByte || limit.Statistics == nil || limit.Statistics.Queue.Overlimits == 0 {
				t.Errorf("%s: %+v delayed nothing: %+v", name, limit, limit.Statistics)
			}
			return
		}
	}
	t.Errorf("%s has no limit: %v", name, queues)
}
