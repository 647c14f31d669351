package agent

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/net/dns"
	"github.com/setpoint-io/setpoint/agent/net/network/probe"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// probeFirewall finds out what other software of this machine forbids pods, from when they start on.
func (a *agent) probeFirewall(ctx context.Context, children *sync.WaitGroup) {
	if a.PodPlace == nil {
		return
	}
	watch := probe.NewWatch(probe.Config{
		Lend: a.PodPlace, Targets: a.probed, Domain: a.ClusterDomain, Pods: a.podRange, Changes: upkeep.Notifications(a.Logger),
		Tell: a.tellFirewall(events.NewRecorder(ctx, a.Client, a.NodeName)), Logger: a.Logger,
	})
	children.Go(func() { watch.Run(ctx) })
}

// probed are ports of this machine that pods may reach: those of the cluster's DNS, or the agent's own if the DNS is elsewhere.
func (a *agent) probed() []probe.Target {
	if a.DNS != nil && a.DNS.Held().IsValid() {
		at := netip.AddrPortFrom(a.DNS.Held(), dns.Port)
		return []probe.Target{{Network: "udp", At: at}, {Network: "tcp", At: at}}
	}
	own := a.ownAddresses()
	if len(own) == 0 {
		return nil
	}
	return []probe.Target{{Network: "tcp", At: netip.AddrPortFrom(own[0], uint16(a.port))}}
}

// podRange is that of IPv4 of all pods of the cluster.
func (a *agent) podRange() netip.Prefix {
	ranges := a.podRanges()
	i := slices.IndexFunc(ranges, func(p netip.Prefix) bool { return p.Addr().Is4() })
	if i < 0 {
		return netip.Prefix{}
	}
	return ranges[i]
}

// tellFirewall tells of a problem in the Node's condition, and in events when it begins and ends.
func (a *agent) tellFirewall(recorder events.Recorder) func(nodefirewall.Problem) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.NodeName, UID: types.UID(a.NodeName)}
	return func(p nodefirewall.Problem) {
		before := a.firewall.Swap(&p)
		switch {
		case p.Any():
			a.Logger.Warn("a firewall of this machine blocks pods", "problem", p.What, "command", p.Command)
			recorder.Event(about, corev1.EventTypeWarning, events.FirewallBlocksPods, p.Message())
		case before != nil && before.Any():
			a.Logger.Info("this machine lets packets of pods pass again")
			recorder.Event(about, corev1.EventTypeNormal, events.FirewallLetsPodsPass, p.Condition().Message)
		}
		a.look()
	}
}

// firewallConditions say what is blocked, once it is known.
func (a *agent) firewallConditions() []corev1.NodeCondition {
	p := a.firewall.Load()
	if p == nil {
		return nil
	}
	return []corev1.NodeCondition{p.Condition()}
}
