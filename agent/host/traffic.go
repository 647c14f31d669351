package host

import (
	"context"
	"log/slog"
	"net"
	"net/netip"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/owntraffic"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// traffic is the cluster's own traffic of this node, and the network that keeps Services out of it.
type traffic struct {
	*owntraffic.Keeper
	network *network.Translation
}

func newTraffic(loopbackPorts bool, servers []string, ports []owntraffic.Port, logger *slog.Logger) *traffic {
	translation := network.NewTranslation(network.TranslationConfig{
		Services: servicerange.Default, Bridge: network.DefaultBridge, LoopbackPorts: loopbackPorts,
	})
	return &traffic{network: translation, Keeper: owntraffic.New(owntraffic.Config{
		Servers: servers, Ports: ports, Tell: translation.SetOwn, Logger: logger,
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	})}
}

// traffic is that of an agent with these flags.
func (o *Options) traffic(servers []string) *traffic {
	ports := append(tunnels(), owntraffic.TCP(o.Port))
	if number := int(reserved.PortOf(o.GossipAddress)); number != 0 {
		ports = append(ports, owntraffic.TCP(number), owntraffic.UDP(number))
	}
	return newTraffic(false, servers, ports, o.Logger)
}

// ports are those of a node without gossip.
func (c *NodeConfig) ports() []owntraffic.Port {
	ports := tunnels()
	if at, ok := c.Listener.Addr().(*net.TCPAddr); ok {
		ports = append(ports, owntraffic.TCP(at.Port))
	}
	return ports
}

// tunnels are the ports of the ways between nodes.
func tunnels() []owntraffic.Port {
	return []owntraffic.Port{owntraffic.UDP(plan.VXLANPort), owntraffic.UDP(plan.WireGuardPort)}
}

// setPeers takes the addresses of the other nodes.
func (t *traffic) setPeers(peers []plan.Node) {
	var all []netip.Addr
	for _, n := range peers {
		for _, ip := range []netip.Addr{n.IP, n.IP6} {
			if ip.IsValid() {
				all = append(all, ip)
			}
		}
	}
	t.Nodes(all)
}
