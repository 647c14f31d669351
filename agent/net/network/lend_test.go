package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/agent/net/network/probe"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// TestAProbeStandsWhereAPodWould: the guard, masquerading and Docker's FORWARD that drops are no problem, and the pods do not notice.
func TestAProbeStandsWhereAPodWould(t *testing.T) {
	n := newNetwork(t)
	pod := startPod(t, n, "beside")
	check(t, nftChange(forbidForwarding))
	t.Cleanup(func() {
		check(t, nftChange(func(c *nft.Conn) { c.DelTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"}) }))
	})
	check(t, n.openTables(n.pool()))
	at := netip.MustParseAddrPort(gatewayOfTest + ":5300")
	listener, err := net.Listen("tcp", at.String())
	check(t, err)
	defer listener.Close()
	told := make(chan nodefirewall.Problem, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := probe.NewWatch(probe.Config{
		Lend: n.Lend, Targets: func() []probe.Target { return []probe.Target{{Network: "tcp", At: at}} }, Domain: "cluster.local",
		Pods:    func() netip.Prefix { return n.config.Ranges.Pods },
		Changes: func(ctx context.Context, _ func()) { <-ctx.Done() },
		Tell:    func(p nodefirewall.Problem) { told <- p }, Logger: n.config.Logger,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watch.Run(ctx)
	}()
	select {
	case p := <-told:
		if p.Any() {
			t.Errorf("found %+v", p)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is found out")
	}
	cancel()
	<-ended
	if used := n.addresses.used; len(used) != 1 || !used[pod.endpoint.Address] {
		t.Errorf("addresses in use: %v", used)
	}
	if names, err := Connected(n.config.Bridge); err != nil || len(names) != 1 {
		t.Errorf("connected: %v, %v", names, err)
	}
}

// TestALentAddressIsNoPods until it is given back, and pods get theirs in the same order.
func TestALentAddressIsNoPods(t *testing.T) {
	n := New(Config{})
	if _, _, err := n.Lend(); !errors.Is(err, ErrNoPodCIDR) {
		t.Errorf("before there is a range: %v", err)
	}
	n.addresses = newAddresses(netip.MustParsePrefix("10.199.7.0/29"), netip.Prefix{}, "")
	place, giveBack, err := n.Lend()
	if err != nil || place.Address.String() != "10.199.7.6" || place.Gateway.String() != "10.199.7.1" {
		t.Fatalf("%+v, %v", place, err)
	}
	for _, want := range []string{"10.199.7.2", "10.199.7.3", "10.199.7.4", "10.199.7.5"} {
		if got, err := n.addresses.allocate(); err != nil || got.String() != want {
			t.Errorf("allocated %s, %v, want %s", got, err, want)
		}
	}
	if got, err := n.addresses.allocate(); !errors.Is(err, ErrNoAddress) {
		t.Errorf("a pod has %s, %v", got, err)
	}
	if _, _, err := n.Lend(); !errors.Is(err, ErrNoAddress) {
		t.Errorf("of a full node: %v", err)
	}
	giveBack()
	if got, err := n.addresses.allocate(); err != nil || got != place.Address {
		t.Errorf("allocated %s, %v", got, err)
	}
}
