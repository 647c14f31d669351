package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/iptables"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

const errNoDevice = unix.ENODEV

// setUpBridge makes or adopts the bridge.
func (n *Network) setUpBridge(pool *addresses) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = n.config.Bridge
	attributes.MTU = n.config.MTU
	// Fixed, because a bridge otherwise takes the lowest address of its ports and changes it under the pods.
	attributes.HardwareAddr = macOf(pool.gateway())
	err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes})
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	bridge, err := netlink.LinkByName(n.config.Bridge)
	if err != nil {
		return err
	}
	if err := n.bridge(pool).Mend(bridge); err != nil {
		return err
	}
	gateway := netip.PrefixFrom(pool.gateway(), pool.prefix.Bits())
	if err := netlink.AddrReplace(bridge, &netlink.Addr{IPNet: link.IPNet(gateway)}); err != nil {
		return fmt.Errorf("address %s: %w", gateway, err)
	}
	if err := errors.Join(ignoreRouters(n.config.Bridge), addSecondGateway(bridge, pool)); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return err
	}
	if err := n.routeServices(bridge, pool); err != nil {
		return err
	}
	return n.enableForwarding()
}

// routeServices leads the machine's own packets to Services to the bridge. None arrives there: the translation of what
// leaves the machine sends them elsewhere, but only those that have a route. The route goes with the bridge.
func (n *Network) routeServices(bridge netlink.Link, pool *addresses) error {
	for _, f := range pool.families() {
		services := n.config.Ranges.services(f)
		if !services.IsValid() {
			continue
		}
		route := &netlink.Route{LinkIndex: bridge.Attrs().Index, Dst: link.IPNet(services.Masked()), Scope: netlink.SCOPE_LINK}
		if err := netlink.RouteAdd(route); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("route to Services %s: %w", services, err)
		}
	}
	return nil
}

// enableForwarding lets the host route, and keeps it from telling two pods of one bridge to bypass it.
func (n *Network) enableForwarding() error {
	for _, s := range n.settings() {
		if err := s.set(); err != nil {
			return err
		}
	}
	return nil
}

// setting is one of the kernel's, by its path in /proc/sys.
type setting struct{ name, value string }

// settings are what pods need of IPv4. n.mu is held.
func (n *Network) settings() []setting {
	all := []setting{{"net/ipv4/ip_forward", "1"}}
	for _, device := range []string{"all", n.config.Bridge} {
		all = append(all, setting{"net/ipv4/conf/" + device + "/send_redirects", "0"})
	}
	if len(n.hostPorts) > 0 {
		all = append(all, localnet(n.config.Bridge))
	}
	return all
}

// localnet lets the bridge have replies to what the machine itself sends to 127.0.0.1; pods' own packets to there are dropped.
func localnet(bridge string) setting {
	return setting{"net/ipv4/conf/" + bridge + "/route_localnet", "1"}
}

// holds reports whether the kernel has it so.
func (s setting) holds() bool {
	data, err := os.ReadFile("/proc/sys/" + s.name)
	return err == nil && strings.TrimSpace(string(data)) == s.value
}

// ignoreRouters keeps a pod from giving other machines IPv6 addresses and a default route through itself (CVE-2020-10749): any pod may
// send raw packets. It keeps pods from heeding redirects too: the machine sends them, since a packet to another pod leaves by the
// bridge that it came by, and pods reach each other by the machine only. It works on an interface of the calling thread's network
// namespace, which must not be up yet. A kernel without IPv6 has nothing to ignore.
func ignoreRouters(device string) error {
	for _, name := range []string{"accept_ra", "accept_redirects"} {
		if err := sysctl("net/ipv6/conf/"+device+"/"+name, "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// set writes only what differs: in a container the files may be read-only and already right.
func (s setting) set() error {
	if s.holds() {
		return nil
	}
	return os.WriteFile("/proc/sys/"+s.name, []byte(s.value), 0)
}

func sysctl(name, value string) error { return setting{name, value}.set() }

// Remove takes the bridge, the nftables table and our rules in others' away; the pods must be gone. The next SetPodCIDR makes them again.
func (n *Network) Remove() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = nil
	_, err := iptables.Forward(n.config.Bridge).Remove()
	err = errors.Join(err, n.removeTables(), n.guard.Delete())
	_, linkErr := link.Remove(n.config.Bridge)
	return errors.Join(err, linkErr)
}
