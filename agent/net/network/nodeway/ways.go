package nodeway

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

const (
	// Table is the routing table of pods that ask a node. routeProtocol marks the routes in it as ours.
	Table         = 83
	routeProtocol = 83
	// rulePriority comes before the main table, and before rules of VPNs that look there.
	rulePriority = 10083
)

// Way leads to one address of another node.
type Way struct {
	Node netip.Addr
	// Route is how its pods are reached; its destination is not looked at. Nil: the machine's own route to the node is the way.
	Route *netlink.Route
}

// Ways are those of one node. They have no lock: one goroutine calls at a time.
type Ways struct {
	tables []*sources
}

// New changes nothing before Set.
func New(bridge string) *Ways {
	return &Ways{tables: []*sources{{family: ipfamily.V4, name: TableName(bridge)}, {family: ipfamily.V6, name: TableName(bridge)}}}
}

// Set leads pods of these ranges by these ways, and by no others. Where all is so already it costs a few questions to the kernel.
func (w *Ways) Set(pods []netip.Prefix, ways []Way) error {
	routes := routesOf(ways)
	var led []netip.Prefix
	if len(routes) > 0 {
		led = pods
	}
	// A source is kept once there is a way, and as long as there is one.
	err := errors.Join(addRoutes(routes), addRules(led))
	if err != nil {
		ways = slices.DeleteFunc(slices.Clone(ways), func(w Way) bool { return w.Route != nil })
	}
	for _, t := range w.tables {
		err = errors.Join(err, t.set(pods, ways))
	}
	return errors.Join(err, removeRules(led), removeRoutes(routes))
}

// routesOf are the routes of the table, by their destinations.
func routesOf(ways []Way) map[netip.Addr]*netlink.Route {
	routes := map[netip.Addr]*netlink.Route{}
	for _, w := range ways {
		if w.Route == nil {
			continue
		}
		route := *w.Route
		route.Dst, route.Table, route.Protocol = link.HostNet(w.Node), Table, routeProtocol
		routes[w.Node] = &route
	}
	return routes
}

// present are the routes that the table has; none on a machine that has no such tables.
func present() (map[netip.Addr]netlink.Route, error) {
	list, err := link.Routes(netlink.FAMILY_ALL, Table)
	if err = nft.IgnoreMissing(fmt.Sprintf("routing table %d", Table), err); err != nil && !link.IsGone(err) {
		return nil, err
	}
	routes := map[netip.Addr]netlink.Route{}
	for _, route := range list {
		if route.Dst != nil {
			routes[link.PrefixOf(route.Dst).Addr()] = route
		}
	}
	return routes, nil
}

func addRoutes(wanted map[netip.Addr]*netlink.Route) error {
	have, err := present()
	for address, route := range wanted {
		if same(have[address], *route) {
			continue
		}
		if failed := netlink.RouteReplace(route); failed != nil {
			err = errors.Join(err, fmt.Errorf("route of pods to node %s: %w", address, failed))
		}
	}
	return err
}

func same(a, b netlink.Route) bool {
	return a.Dst != nil && a.LinkIndex == b.LinkIndex && a.MTU == b.MTU && a.Gw.Equal(b.Gw) &&
		(a.Type == unix.RTN_UNREACHABLE) == (b.Type == unix.RTN_UNREACHABLE)
}

func removeRoutes(wanted map[netip.Addr]*netlink.Route) error {
	have, err := present()
	for address, route := range have {
		if wanted[address] != nil {
			continue
		}
		if failed := netlink.RouteDel(&route); failed != nil && !errors.Is(failed, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("stale route of pods to node %s: %w", address, failed))
		}
	}
	return err
}

// rules are those that lead to the table, by the ranges from which; none on a machine that has no rules of routing.
func rules() (map[netip.Prefix]netlink.Rule, error) {
	list, err := link.Rules(netlink.FAMILY_ALL, Table)
	if err = nft.IgnoreMissing("rules of routing", err); err != nil {
		return nil, err
	}
	found := map[netip.Prefix]netlink.Rule{}
	for _, rule := range list {
		var from netip.Prefix // invalid: from everywhere, which is none of ours
		if rule.Src != nil {
			from = link.PrefixOf(rule.Src)
		}
		found[from] = rule
	}
	return found, nil
}

func addRules(pods []netip.Prefix) error {
	if len(pods) == 0 {
		return nil
	}
	have, err := rules()
	for _, from := range pods {
		if _, found := have[from]; found {
			continue
		}
		rule := netlink.NewRule()
		rule.Table, rule.Priority, rule.Family = Table, rulePriority, familyNumber(from)
		rule.Src = link.IPNet(from)
		if failed := netlink.RuleAdd(rule); failed != nil {
			err = errors.Join(err, fmt.Errorf("rule of routing for pods of %s: %w", from, failed))
		}
	}
	return err
}

func familyNumber(p netip.Prefix) int {
	if p.Addr().Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

func removeRules(pods []netip.Prefix) error {
	have, err := rules()
	for from, rule := range have {
		if slices.Contains(pods, from) {
			continue
		}
		if failed := netlink.RuleDel(&rule); failed != nil && !link.IsGone(failed) {
			err = errors.Join(err, fmt.Errorf("stale rule of routing for pods of %s: %w", from, failed))
		}
	}
	return err
}

// Remove takes all away; removed says what there was.
func Remove(bridge string) (removed []string, err error) {
	routes, err := present()
	found, rulesErr := rules()
	if len(found) > 0 {
		removed = append(removed, fmt.Sprintf("%d rules of routing", len(found)))
	}
	if len(routes) > 0 {
		removed = append(removed, fmt.Sprintf("%d routes of pods to nodes", len(routes)))
	}
	return removed, errors.Join(err, rulesErr, New(bridge).Set(nil, nil))
}
