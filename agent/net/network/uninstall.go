package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/bandwidth"
	"github.com/setpoint-io/setpoint/agent/net/network/guard"
	"github.com/setpoint-io/setpoint/agent/net/network/iptables"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/agent/net/network/nodeway"
	"github.com/setpoint-io/setpoint/agent/net/network/ownaddress"
	"github.com/setpoint-io/setpoint/agent/net/network/probe"
)

// Connected are the host interfaces of the pods that are on the bridge.
func Connected(bridge string) ([]string, error) {
	device, err := netlink.LinkByName(bridge)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", bridge, err)
	}
	links, err := link.List()
	if err != nil {
		return nil, fmt.Errorf("interfaces of bridge %s: %w", bridge, err)
	}
	var names []string
	for _, l := range links {
		if l.Attrs().MasterIndex == device.Attrs().Index && l.Attrs().Name != probe.PodInterface {
			names = append(names, l.Attrs().Name)
		}
	}
	return names, nil
}

// Installed tells whether there is something for Uninstall, or may be.
func Installed(bridge string) bool {
	if _, err := netlink.LinkByName(bridge); !errors.As(err, new(netlink.LinkNotFoundError)) {
		return true
	}
	for _, device := range []string{VXLANDevice, WireGuardDevice} {
		if _, err := netlink.LinkByName(device); err == nil {
			return true
		}
	}
	routes, err := installed()
	if err != nil || len(routes) > 0 || new(ownaddress.Holder).Held().IsValid() {
		return true
	}
	conn, err := nft.Open()
	if err != nil {
		return false // without nftables there is no table of ours
	}
	tables, err := New(Config{Bridge: bridge}).ownTables(conn)
	return err != nil || len(tables) > 0
}

// Uninstall takes away all that agents have made in this network namespace: the bridge, the tables, the rules in others'
// tables, the routes to other nodes and the devices of VXLAN and WireGuard, the address of the cluster's DNS, and the devices
// that delay what pods send. The pods must be gone, and so must the agents. It returns what there was; doing it again finds
// nothing. What pods need of the kernel's settings, forwarding, stays as it is: others may need it too.
func Uninstall(bridge string) (removed []string, err error) {
	n := New(Config{Bridge: bridge})
	tables, err := n.uninstallTables()
	rules, rulesErr := iptables.Forward(bridge).Remove()
	routes, routesErr := uninstallRoutes()
	nodes, nodesErr := nodeway.Remove(bridge)
	tunnels, tunnelErr := removeTunnel(bridge)
	encrypted, encryptedErr := removeEncrypted()
	addresses, addressErr := uninstallOwnAddress()
	delays, delayErr := bandwidth.RemoveAll(len(HostInterface("")))
	bridges, bridgeErr := n.uninstallBridge()
	return slices.Concat(tables, rules, routes, nodes, tunnels, encrypted, addresses, delays, bridges),
		errors.Join(err, rulesErr, routesErr, tunnelErr, encryptedErr, nodesErr, addressErr, delayErr, bridgeErr, probe.Remove())
}

func (n *Network) uninstallTables() ([]string, error) {
	conn, err := nft.Open()
	if err != nil {
		return nil, nil //nolint:nilerr // a machine without nftables has no table of ours
	}
	tables, err := n.ownTables(conn)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	var found []string
	for _, table := range tables {
		conn.DelTable(table)
		found = append(found, "nftables table "+table.Name)
	}
	if err := conn.Flush(); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(found, ", "), err)
	}
	return found, nil
}

// ownTables are those of our tables that are there.
func (n *Network) ownTables(conn *nft.Conn) ([]*nftables.Table, error) {
	var tables []*nftables.Table
	for _, family := range []nftables.TableFamily{inet.Tables, inet6.Tables, nftables.TableFamilyBridge, nftables.TableFamilyINet} {
		some, err := conn.ListTablesOfFamily(family)
		if err = nft.IgnoreMissing("nftables", err); err != nil {
			return nil, err
		}
		tables = append(tables, some...)
	}
	own := []string{
		n.table(), n.portsTable(), translationTable, guard.TableName(n.config.Bridge), HostTable(n.config.Bridge), tunnelTable(n.config.Bridge),
		nodeway.TableName(n.config.Bridge), ownaddress.TableName,
	}
	return slices.DeleteFunc(tables, func(t *nftables.Table) bool {
		return !slices.Contains(own, t.Name) && !strings.HasPrefix(t.Name, PolicyTables(n.config.Bridge))
	}), nil
}

// PolicyTables is how the names of the tables begin in which agent/net/policy keeps what pods of a bridge may send and receive.
func PolicyTables(bridge string) string { return "setpoint-" + bridge + "-policy-" }

// HostTable is the name of the tables by which agent/net/hostfirewall keeps pods of a bridge from the machine's ports.
func HostTable(bridge string) string { return "setpoint-" + bridge + "-host" }

func uninstallRoutes() (removed []string, err error) {
	present, err := installed()
	if err != nil {
		return nil, fmt.Errorf("routes to other nodes: %w", err)
	}
	for prefix, route := range present {
		if failed := netlink.RouteDel(&route); failed != nil && !errors.Is(failed, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("route to %s via %s: %w", prefix, route.Gw, failed))
			continue
		}
		removed = append(removed, fmt.Sprintf("route to %s via %s", prefix, route.Gw))
	}
	slices.Sort(removed)
	return removed, err
}

func uninstallOwnAddress() ([]string, error) {
	held := new(ownaddress.Holder).Held()
	if !held.IsValid() {
		return nil, nil
	}
	if err := new(ownaddress.Holder).Hold(netip.Addr{}); err != nil {
		return nil, err
	}
	return []string{"address " + held.String()}, nil
}

func (n *Network) uninstallBridge() ([]string, error) {
	removed, err := link.Remove(n.config.Bridge)
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", n.config.Bridge, err)
	}
	if !removed {
		return nil, nil
	}
	return []string{"bridge " + n.config.Bridge}, nil
}
