package network

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/network/wireguard"
)

// WireGuardDevice is this node's end of encrypted ways. It is there while another node is reached by it.
const WireGuardDevice = "setpoint-wg"

// encrypted is this node's end of encrypted ways. It is zero when no other node is reached by it.
type encrypted tunnel

// findKey tells the others this node's key, or why it has none.
func (r *Routes) findKey() error {
	err := wireguard.Probe(probeDevice)
	if err == nil {
		r.key, err = wireguard.Key(r.wireGuardDir())
	}
	if err != nil {
		r.own.Facts.NoWireGuard = err.Error()
		return err
	}
	r.own.Facts.WireGuardKey = r.key.PublicKey().String()
	return nil
}

func (r *Routes) wireGuardDir() string { return filepath.Join(r.config.DataDir, "wireguard") }

// openEncrypted makes the device and tells it its peers, if a node is reached by it.
func (r *Routes) openEncrypted(wanted map[netip.Prefix]way) (e encrypted, err error) {
	config, err := r.encryptedPeers(wanted)
	if err != nil || len(config.Peers) == 0 {
		return e, err
	}
	if e.mtu, err = tunnelMTUs(nodesBy(plan.ByWireGuard, wanted), plan.WireGuardOverheadBytes); err != nil {
		return e, err
	}
	device, err := wireguard.Open(WireGuardDevice, r.wireGuardDir())
	if err == nil {
		err = device.Set(config)
	}
	if err == nil {
		err = r.readyEncrypted(device.Link, slices.Max(slices.Collect(maps.Values(e.mtu))))
	}
	if err != nil {
		return e, fmt.Errorf("%s: %w", WireGuardDevice, err)
	}
	e.index = device.Link.Attrs().Index
	return e, nil
}

// encryptedPeers are the other nodes' ends. What comes from one is taken only from addresses of that node's ranges, and from its own.
func (r *Routes) encryptedPeers(wanted map[netip.Prefix]way) (wireguard.Config, error) {
	ranges := map[string][]netip.Prefix{}
	nodes := map[string]plan.Node{}
	for prefix, w := range wanted {
		if w.by == plan.ByWireGuard {
			ranges[w.node.Name], nodes[w.node.Name] = append(ranges[w.node.Name], prefix), w.node
		}
	}
	for address, prefix := range nodeAddresses(wanted) {
		if w := wanted[prefix]; w.by == plan.ByWireGuard {
			ranges[w.node.Name] = append(ranges[w.node.Name], netip.PrefixFrom(address, address.BitLen()))
		}
	}
	config := wireguard.Config{Key: r.key, Port: plan.WireGuardPort}
	for name, node := range nodes {
		key, err := wgtypes.ParseKey(node.Facts.WireGuardKey)
		if err != nil {
			return config, fmt.Errorf("key of node %s: %w", name, err)
		}
		slices.SortFunc(ranges[name], netip.Prefix.Compare)
		endpoint := netip.AddrPortFrom(node.IP, plan.WireGuardPort)
		config.Peers = append(config.Peers, wireguard.Peer{Key: key, Endpoint: endpoint, Ranges: ranges[name]})
	}
	return config, nil
}

// readyEncrypted gives the device what any link has. Its address is the first of this node's range, which no pod gets; one
// of a range that the node had before goes.
func (r *Routes) readyEncrypted(device netlink.Link, mtu int) (err error) {
	if device.Attrs().MTU != mtu {
		err = netlink.LinkSetMTU(device, mtu)
	}
	own := tunnelAddress(r.own.PodCIDR)
	address := &netlink.Addr{IPNet: link.HostNet(own)}
	present, listErr := link.Addresses(device, netlink.FAMILY_V4)
	err = errors.Join(err, listErr, ignoreRouters(WireGuardDevice), netlink.AddrReplace(device, address))
	for _, other := range present {
		if !other.IP.Equal(address.IP) {
			err = errors.Join(err, netlink.AddrDel(device, &other))
		}
	}
	return errors.Join(err, netlink.LinkSetUp(device))
}

// route leads to a node, or nowhere if there is no device: packets that should be encrypted must not find another way.
func (e encrypted) route(prefix netip.Prefix, w way) (*netlink.Route, error) {
	if e.index == 0 {
		return nowhere(prefix), nil
	}
	return &netlink.Route{
		Dst: link.IPNet(prefix), LinkIndex: e.index, Scope: netlink.SCOPE_LINK, Protocol: routeProtocol, MTU: e.mtu[w.node.IP],
	}, nil
}

func nowhere(prefix netip.Prefix) *netlink.Route {
	return &netlink.Route{Dst: link.IPNet(prefix), Type: unix.RTN_UNREACHABLE, Protocol: routeProtocol}
}

// closeEncrypted removes the device when no node is reached by it.
func closeEncrypted(wanted map[netip.Prefix]way) error {
	for range nodesBy(plan.ByWireGuard, wanted) {
		return nil
	}
	_, err := removeEncrypted()
	return err
}

// removeEncrypted removes the device, and its process ends; removed says what there was.
func removeEncrypted() (removed []string, err error) {
	if _, err := netlink.LinkByName(WireGuardDevice); errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err := wireguard.Remove(WireGuardDevice); err != nil {
		return nil, fmt.Errorf("%s: %w", WireGuardDevice, err)
	}
	return []string{"device " + WireGuardDevice}, nil
}
