package machines

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
)

// segment is the number of a link that machines share. The namespace of the test has an address on each and routes between them.
type segment int

// routerHost is the last part of the address of the namespace of the test.
const routerHost = 254

func (s segment) bridge() string { return fmt.Sprintf("rack%d", s) }

func (s segment) address(host int) string { return fmt.Sprintf("10.213.%d.%d", s, host) }

// second is an address of IPv6. Nobody routes those between segments.
func (s segment) second(host int) string { return fmt.Sprintf("fd13:%d::%d", s, host) }

func addSegments(segments []segment) error {
	if len(segments) > 1 {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
			return err
		}
	}
	for _, s := range segments {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = s.bridge()
		bridge := &netlink.Bridge{LinkAttrs: attrs}
		address, err := netlink.ParseAddr(s.address(routerHost) + networkBits)
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.LinkAdd(bridge), netlink.AddrAdd(bridge, address), netlink.LinkSetUp(bridge)); err != nil {
			return err
		}
	}
	return nil
}

func removeSegments(segments []segment) (err error) {
	for _, s := range segments {
		if bridge, missing := netlink.LinkByName(s.bridge()); missing == nil {
			err = errors.Join(err, netlink.LinkDel(bridge))
		}
	}
	return err
}

// gateway is the router of a segment; a link that is the only one has none.
func (c *Cluster) gateway(s segment) string {
	if len(c.segments) == 1 {
		return ""
	}
	return s.address(routerHost)
}
