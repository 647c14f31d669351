package agent

import (
	"context"
	"net/netip"
	"sync"

	"k8s.io/client-go/informers"

	"github.com/setpoint-io/setpoint/agent/net/hostfirewall"
)

// closePorts keeps pods from the ports of this machine that they need not reach, if that is wanted. begin comes before the first pod,
// opened is told which ports are open for Gateways.
func (a *agent) closePorts(
	ctx context.Context, children *sync.WaitGroup, everywhere, bound informers.SharedInformerFactory,
) (begin func(), opened func([]int)) {
	if a.HostFirewall == nil {
		return func() {}, nil
	}
	watch := hostfirewall.New(hostfirewall.Config{
		Everywhere: everywhere, Here: bound, Own: a.ownAddresses, Pods: a.podRanges,
		Listening: hostfirewall.AgentPorts(a.port, a.DNS != nil, a.Ingress.HTTP, a.Ingress.HTTPS),
		Network:   a.HostFirewall, Logger: a.Logger,
	})
	a.Upkeep.Hold(watch.Thing())
	children.Go(func() { watch.Run(ctx) })
	return watch.Begin, watch.OpenGateways
}

func (a *agent) ownAddresses() (all []netip.Addr) {
	for _, text := range a.hostIPs() {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, address.Unmap())
		}
	}
	return all
}

// podRanges are those of the whole cluster.
func (a *agent) podRanges() (all []netip.Prefix) {
	of := a.podNetwork.Load()
	if of == nil {
		return nil
	}
	for _, p := range []netip.Prefix{of.Pods, of.Pods6} {
		if p.IsValid() {
			all = append(all, p)
		}
	}
	return all
}
