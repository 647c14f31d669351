package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// PodInterface and OutsideInterface are the machine's ends of the links to the two namespaces.
const (
	PodInterface     = "setpoint-probe"
	OutsideInterface = "setpoint-out"
	innerInterface   = "eth0"
)

// The addresses of the link to the outside are of a range that documents are written with (RFC 5737), so no network has it. Those of a
// link are not routed, and some machines forward none on purpose.
var (
	machineAddress = netip.MustParsePrefix("192.0.2.82/31")
	outsideAddress = netip.MustParsePrefix("192.0.2.83/31")
)

// noAddressIPv6 is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h: the link is not to have addresses by itself.
const noAddressIPv6 = 1

// room is a network namespace at the end of a link. Nobody but this process knows it, so it ends with it.
type room struct {
	ns      netns.NsHandle
	netlink *netlink.Handle
	link    netlink.Link // the machine's end
	inner   netlink.Link
}

// Remove takes away what an agent that was killed has left, if the kernel has not done so yet.
func Remove() error {
	_, podErr := link.Remove(PodInterface)
	_, outErr := link.Remove(OutsideInterface)
	return errors.Join(podErr, outErr)
}

// openPod makes the namespace that hangs on the bridge as a pod does.
func openPod(place Place) (*room, error) {
	bridge, err := netlink.LinkByName(place.Bridge)
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", place.Bridge, err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU, attributes.MasterIndex = PodInterface, place.MTU, bridge.Attrs().Index
	own := netip.PrefixFrom(place.Address, place.Address.BitLen())
	r, err := open(attributes, place.Hardware, own, place.Gateway)
	if err != nil {
		return nil, err
	}
	_, err = netlink.LinkByName(place.Bridge) // it takes packets at once, if it had no pod before
	return r.unless(err)
}

// openOutside makes the namespace that is none of the cluster's. The way back to pods is for machines that do not replace their addresses.
func openOutside() (*room, error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = OutsideInterface
	r, err := open(attributes, nil, outsideAddress, machineAddress.Addr())
	if err != nil {
		return nil, err
	}
	return r.unless(netlink.AddrAdd(r.link, &netlink.Addr{IPNet: link.IPNet(machineAddress)}))
}

// open makes a namespace with an address, and a link to it; what does not lie at the link is reached by gateway.
func open(attributes netlink.LinkAttrs, hardware net.HardwareAddr, own netip.Prefix, gateway netip.Addr) (*room, error) {
	r := &room{ns: netns.None()}
	err := r.enter(attributes, hardware)
	if err == nil {
		err = r.configure(own, gateway)
	}
	return r.unless(err)
}

// unless closes the room after an error.
func (r *room) unless(err error) (*room, error) {
	if err != nil {
		r.close()
		return nil, fmt.Errorf("probe: %w", err)
	}
	return r, nil
}

// enter makes the namespace and the link.
func (r *room) enter(attributes netlink.LinkAttrs, hardware net.HardwareAddr) (err error) {
	if r.ns, err = apart(netns.New); err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	if r.netlink, err = netlink.NewHandleAt(r.ns, unix.NETLINK_ROUTE); err != nil {
		return err
	}
	pair := netlink.NewVeth(attributes)
	pair.PeerName, pair.PeerHardwareAddr, pair.PeerNamespace = innerInterface, hardware, netlink.NsFd(int(r.ns))
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("interface %s: %w", attributes.Name, err)
	}
	r.link = pair
	r.inner, err = r.netlink.LinkByName(innerInterface)
	return err
}

func (r *room) configure(own netip.Prefix, gateway netip.Addr) error {
	_ = netlink.LinkSetIP6AddrGenMode(r.link, noAddressIPv6) // a kernel without IPv6 makes none
	_ = r.netlink.LinkSetIP6AddrGenMode(r.inner, noAddressIPv6)
	if err := errors.Join(netlink.LinkSetUp(r.link), r.netlink.LinkSetUp(r.inner)); err != nil {
		return err
	}
	if err := r.netlink.AddrAdd(r.inner, &netlink.Addr{IPNet: link.IPNet(own)}); err != nil {
		return fmt.Errorf("address %s: %w", own, err)
	}
	way := netlink.Route{LinkIndex: r.inner.Attrs().Index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	if err := r.netlink.RouteAdd(&way); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	// The kernel acts on "the link is up" when it is asked about a link; see Network.settle of agent/net/network.
	_, inner := r.netlink.LinkByName(innerInterface)
	_, outer := netlink.LinkByName(r.link.Attrs().Name)
	return errors.Join(inner, outer)
}

// sees reports whether the neighbour answers, which a firewall of IP does not prevent.
func (r *room) sees(neighbour netip.Addr) bool {
	known, err := r.netlink.NeighList(r.inner.Attrs().Index, unix.AF_INET)
	for _, n := range known {
		if address, _ := netip.AddrFromSlice(n.IP); address.Unmap() == neighbour && len(n.HardwareAddr) > 0 {
			return true
		}
	}
	return err != nil
}

// close takes the link away, and with it and the handles the namespace.
func (r *room) close() {
	if r.link != nil {
		_ = link.Delete(r.link)
	}
	if r.netlink != nil {
		r.netlink.Close()
	}
	if r.ns.IsOpen() {
		_ = r.ns.Close()
	}
}

// within runs do in the room's namespace. Sockets stay where they were made.
func within(r *room, do func() error) error {
	_, err := inside(r, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func inside[T any](r *room, do func() (T, error)) (result T, err error) {
	return apart(func() (result T, err error) {
		if err := netns.Set(r.ns); err != nil {
			return result, err
		}
		return do()
	})
}

// apart runs do on a thread of its own, which may be in another namespace afterwards: it goes back, or it ends.
func apart[T any](do func() (T, error)) (result T, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // a thread that is locked when its goroutine ends, ends too
		own, ownErr := netns.Get()
		if err = ownErr; err != nil {
			return
		}
		defer own.Close()
		result, err = do()
		if netns.Set(own) == nil {
			runtime.UnlockOSThread()
		}
	}()
	<-done
	return result, err
}
