package announce

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// groups are those of multicast in which machines ask for addresses of IPv6. The kernel tells switches, which may lead the frames of
// a group to its members only, and the hardware, which may hear those only. Each has a socket, because one may not join many.
type groups struct {
	link   int
	joined map[netip.Addr]int // sockets
}

// set joins the groups of the addresses, and leaves others.
func (g groups) set(l language, addresses []netip.Addr) error {
	wanted := map[netip.Addr]bool{}
	var errs error
	for _, ip := range addresses {
		group := l.group(ip)
		if _, is := g.joined[group]; is || !group.IsValid() {
			wanted[group] = true
			continue
		}
		socket, err := g.join(group)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("group %s: %w", group, err))
			continue
		}
		wanted[group], g.joined[group] = true, socket
	}
	g.leave(wanted)
	return errs
}

// join returns a socket; who closes it leaves the group.
func (g groups) join(group netip.Addr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	membership := &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(g.link)}
	if err := unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, membership); err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// leave leaves all groups but some.
func (g groups) leave(but map[netip.Addr]bool) {
	for group, socket := range g.joined {
		if !but[group] {
			_ = unix.Close(socket)
			delete(g.joined, group)
		}
	}
}
