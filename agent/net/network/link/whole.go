package link

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// dumpTriesMax is how often the kernel is asked for a list. One that changes while it is read may lack parts; a busy node's interfaces
// change many times a second.
const dumpTriesMax = 10

// List lists all interfaces.
func List() ([]netlink.Link, error) { return whole(netlink.LinkList) }

// Addresses lists those of an interface, or of all for nil.
func Addresses(of netlink.Link, family int) ([]netlink.Addr, error) {
	return whole(func() ([]netlink.Addr, error) { return netlink.AddrList(of, family) })
}

// Neighbours lists those that are known of an interface, by its index; of AF_BRIDGE what is behind which port or end of a tunnel.
func Neighbours(of, family int) ([]netlink.Neigh, error) {
	return whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(of, family) })
}

// Rules lists those that lead to a table of routes.
func Rules(family, table int) ([]netlink.Rule, error) {
	return whole(func() ([]netlink.Rule, error) {
		return netlink.RuleListFiltered(family, &netlink.Rule{Table: table}, netlink.RT_FILTER_TABLE)
	})
}

// Routes lists those of a table of routes.
func Routes(family, table int) ([]netlink.Route, error) {
	return whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(family, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
	})
}

func whole[T any](dump func() ([]T, error)) (list []T, err error) {
	for range dumpTriesMax {
		if list, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return list, err
}
