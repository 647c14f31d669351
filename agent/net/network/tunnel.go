package network

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/network/vxlanends"
)

// VXLANDevice is this node's end of VXLAN. It is there while another node is reached by it.
const VXLANDevice = "setpoint-vxlan"

const probeDevice = "setpoint-probe"

// ErrNoVXLAN says that the kernel cannot make a VXLAN device.
var ErrNoVXLAN = errors.New("the kernel has no VXLAN devices (module vxlan)")

// probeVXLAN makes a device that is never up, and removes it.
func probeVXLAN() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = probeDevice
	probe := &netlink.Vxlan{LinkAttrs: attributes, VxlanId: plan.VXLANID + 1, Port: plan.VXLANPort}
	err := netlink.LinkAdd(probe)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return ErrNoVXLAN
	}
	if err != nil && !errors.Is(err, os.ErrExist) { // one that another agent's probe made proves as much
		return fmt.Errorf("%w: %w", ErrNoVXLAN, err)
	}
	if err == nil {
		err = netlink.LinkDel(probe)
	}
	if err != nil && !errors.Is(err, os.ErrExist) && !link.IsGone(err) {
		return err
	}
	return nil
}

// tunnel is this node's end of VXLAN. index is 0 when no other node is reached by it. mtu is that of the packets to each
// node's address, less what VXLAN adds.
type tunnel struct {
	index int
	mtu   map[netip.Addr]int
}

// tunnelAddress is a node's on its end: the first of its range, which no pod gets.
func tunnelAddress(podCIDR netip.Prefix) netip.Addr { return podCIDR.Masked().Addr() }

// route is the one that leads to a node. That it needs neither question nor answer, the node's hardware address follows
// from its range, and entries of the kernel lead from there to the node's own address.
func (t tunnel) route(prefix netip.Prefix, w way) (*netlink.Route, error) {
	if t.index == 0 {
		return nil, errNoTunnel
	}
	route := plainRoute(prefix, tunnelAddress(prefix))
	route.LinkIndex, route.Flags, route.MTU = t.index, int(netlink.FLAG_ONLINK), t.mtu[w.node.IP]
	return route, nil
}

var errNoTunnel = errors.New("device " + VXLANDevice + " could not be made")

// openTunnel makes the device and its entries, if a node is reached by it.
func (r *Routes) openTunnel(wanted map[netip.Prefix]way) (t tunnel, err error) {
	ends := endsOf(wanted)
	if len(ends) == 0 {
		return t, nil
	}
	if t.mtu, err = tunnelMTUs(nodesBy(plan.ByVXLAN, wanted), plan.VXLANOverheadBytes); err != nil {
		return t, err
	}
	link, err := r.addTunnel(slices.Max(slices.Collect(maps.Values(t.mtu))))
	if err == nil {
		err = guardTunnel(r.config.Bridge, slices.Collect(maps.Keys(t.mtu)))
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", VXLANDevice, err)
	}
	t.index = link.Attrs().Index
	if err := vxlanends.Add(t.index, ends); err != nil {
		return t, fmt.Errorf("%s: %w", VXLANDevice, err)
	}
	return t, nil
}

// closeTunnel removes what leads nowhere any more: entries, or the device with all of them.
func (r *Routes) closeTunnel(t tunnel, wanted map[netip.Prefix]way) error {
	if t.index != 0 {
		return vxlanends.Remove(t.index, endsOf(wanted))
	}
	if len(endsOf(wanted)) > 0 {
		return nil // it could not be made, which was said
	}
	_, err := removeTunnel(r.config.Bridge)
	return err
}

// endsOf are the nodes that are reached by VXLAN, by the addresses of their ends.
func endsOf(wanted map[netip.Prefix]way) vxlanends.Ends {
	ends := vxlanends.Ends{}
	for prefix, w := range wanted {
		if w.by == plan.ByVXLAN {
			ends[tunnelAddress(prefix)] = vxlanends.Far{Node: w.node.IP, MAC: macOf(tunnelAddress(w.node.PodCIDR)).String()}
		}
	}
	return ends
}

// addTunnel makes the device or adopts the one that is there. One with another address, as this node had it before, is replaced.
func (r *Routes) addTunnel(mtu int) (netlink.Link, error) {
	address := tunnelAddress(r.own.PodCIDR)
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU, attributes.HardwareAddr = VXLANDevice, mtu, macOf(address)
	wanted := &netlink.Vxlan{
		LinkAttrs: attributes, VxlanId: plan.VXLANID, Port: plan.VXLANPort, SrcAddr: r.own.IP.AsSlice(), Learning: false,
	}
	device, err := netlink.LinkByName(VXLANDevice)
	if err == nil && !sameTunnel(device, wanted) {
		if err = netlink.LinkDel(device); err == nil {
			err = netlink.LinkNotFoundError{}
		}
	}
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		if err = netlink.LinkAdd(wanted); err == nil {
			device, err = netlink.LinkByName(VXLANDevice)
		}
	}
	if err != nil {
		return nil, err
	}
	if device.Attrs().MTU != mtu {
		err = netlink.LinkSetMTU(device, mtu)
	}
	return device, errors.Join(err, ignoreRouters(VXLANDevice),
		netlink.AddrReplace(device, &netlink.Addr{IPNet: link.HostNet(address)}))
}

func sameTunnel(link netlink.Link, wanted *netlink.Vxlan) bool {
	present, ok := link.(*netlink.Vxlan)
	return ok && present.VxlanId == wanted.VxlanId && present.Port == wanted.Port && present.SrcAddr.Equal(wanted.SrcAddr) &&
		present.Learning == wanted.Learning && slices.Equal(present.HardwareAddr, wanted.HardwareAddr)
}

// removeTunnel removes the device and its table; removed says what there was.
func removeTunnel(bridge string) (removed []string, err error) {
	link, err := netlink.LinkByName(VXLANDevice)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err == nil {
		err = errors.Join(netlink.LinkDel(link), unguardTunnel(bridge))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", VXLANDevice, err)
	}
	return []string{"device " + VXLANDevice}, nil
}
