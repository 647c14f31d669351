package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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
	link, err := netlink.LinkByName(n.config.Bridge)
	if err != nil {
		return err
	}
	gateway := netip.PrefixFrom(pool.gateway(), pool.prefix.Bits())
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ipNet(gateway)}); err != nil {
		return fmt.Errorf("address %s: %w", gateway, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	return n.enableForwarding()
}

// enableForwarding lets the host route, and keeps it from telling two pods of one bridge to bypass it.
func (n *Network) enableForwarding() error {
	if err := sysctl("net/ipv4/ip_forward", "1"); err != nil {
		return err
	}
	for _, device := range []string{"all", n.config.Bridge} {
		if err := sysctl("net/ipv4/conf/"+device+"/send_redirects", "0"); err != nil {
			return err
		}
	}
	return nil
}

// sysctl writes only what differs: in a container the files may be read-only and already right.
func sysctl(name, value string) error {
	file := "/proc/sys/" + name
	if data, err := os.ReadFile(file); err == nil && len(data) > 0 && string(data[:len(data)-1]) == value {
		return nil
	}
	return os.WriteFile(file, []byte(value), 0)
}

// Remove takes the bridge, the nftables table and our rules in others' away; the pods must be gone. The next SetPodCIDR makes them again.
func (n *Network) Remove() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = nil
	err := errors.Join(n.removeTable(), n.removeForwarding())
	link, linkErr := netlink.LinkByName(n.config.Bridge)
	if errors.As(linkErr, new(netlink.LinkNotFoundError)) {
		return err
	}
	if linkErr == nil {
		linkErr = netlink.LinkDel(link)
	}
	return errors.Join(err, linkErr)
}
