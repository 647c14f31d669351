package agent

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// TestAFirewallIsToldWhenItBeginsAndEnds, and for as long as it is there.
func TestAFirewallIsToldWhenItBeginsAndEnds(t *testing.T) {
	a := newAgentOfTest()
	recorder := record.NewFakeRecorder(1)
	tell := a.tellFirewall(recorder)
	if all := a.firewallConditions(); len(all) != 0 {
		t.Errorf("before it is known: %+v", all)
	}
	for i, step := range []struct {
		problem nodefirewall.Problem
		event   string
	}{
		{nodefirewall.Problem{}, ""},
		{nodefirewall.Problem{Input: true, What: "no DNS", Command: "cure"}, "Warning FirewallBlocksPods no DNS; this ends it: cure"},
		{nodefirewall.Problem{}, "Normal FirewallLetsPodsPass this machine lets packets of pods to itself and beyond it pass"},
	} {
		tell(step.problem)
		event := ""
		select {
		case event = <-recorder.Events:
		default:
		}
		all := a.firewallConditions()
		if event != step.event || len(all) != 1 || (all[0].Status == corev1.ConditionTrue) != step.problem.Any() {
			t.Errorf("step %d: %q, %+v", i, event, all)
		}
	}
}

// TestWhatIsProbed are ports that the node's own firewall leaves pods.
func TestWhatIsProbed(t *testing.T) {
	a := newAgentOfTest()
	a.port, a.NodeIP = 10250, net.IPv4(192, 0, 2, 1)
	if all := a.probed(); len(all) != 1 || all[0].Network != "tcp" || all[0].At != netip.MustParseAddrPort("192.0.2.1:10250") {
		t.Errorf("without a DNS: %v", all)
	}
	a.DNS = heldAddress{}
	if all := a.probed(); len(all) != 2 || all[0].Network != "udp" || all[1].At != netip.MustParseAddrPort("10.96.0.10:53") {
		t.Errorf("with a DNS: %v", all)
	}
	if a.podRange().IsValid() {
		t.Error("a range before the cluster is known")
	}
	of := PodNetwork{Ranges: network.Ranges{Pods: netip.MustParsePrefix("10.42.0.0/16"), Pods6: netip.MustParsePrefix("fd42::/56")}}
	a.podNetwork.Store(&of)
	if a.podRange() != of.Pods {
		t.Errorf("range %s", a.podRange())
	}
}

func newAgentOfTest() *agent {
	a := &agent{Config: Config{NodeName: "a", Logger: slog.New(slog.DiscardHandler)}, changed: make(chan struct{}, 1)}
	a.csiNode = csinode.New(nil, a.NodeName, a.Logger)
	return a
}

// heldAddress is that of the cluster's DNS.
type heldAddress struct{}

func (heldAddress) Hold(netip.Addr) error    { return nil }
func (heldAddress) Held() netip.Addr         { return netip.MustParseAddr("10.96.0.10") }
func (heldAddress) Dropped() (uint64, error) { return 0, nil }
