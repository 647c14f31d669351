// Package network connects pods: a bridge per node, a veth pair per pod, addresses from the node's pod CIDR, routes, VXLAN
// and encrypted ways to the pods of other nodes, host ports, masquerading for traffic that
// leaves the cluster, and the translation of Services' addresses.
//
// It owns the bridge, the pods' host interfaces, the routes it marks with its own protocol number, the devices of VXLAN and WireGuard, and
// the nftables tables of masquerading, host ports and Services, each of both families, and of the tunnel's packets, of IPv4. Packages below
// it own the rest: the table of what pods may send (guard), the tables, rules and routes of pods that ask nodes (nodeway), two rules of
// each family in iptables' FORWARD chain where there is one (iptables: Docker makes that drop what it does not know), the limits of pods
// (bandwidth), and the address at which the machine serves names (ownaddress). The embedded runtime calls [Network]; the agent's wiring
// calls [Routes] with the other nodes' addresses, which names routes of the machine that overlap the cluster's ranges, and [Translation]
// with the Services; agent/reset calls [Uninstall]; a probe of firewalls (agent/net/network/probe) is lent an address that no pod has
// ([Network.Lend]). It may call netlink and nftables only: no CNI executables, no iptables.
//
// Where the node has a second range, of IPv6, each pod has an address of it, with the same number as its first one. A table of
// nftables is made for a family; those of IPv6 stand beside those of IPv4.
//
// It promises: a pod is given a /32 and an on-link gateway, so all traffic between pods, even of one bridge, is
// routed by the host and seen by its connection tracking (Service translation needs no br_netfilter); the MAC
// address is derived from the IP, so a reused address is reachable at once; freed addresses are reused last.
// A pod sends IP and ARP from its own addresses only, and to the bridge only, with raw frames too: nothing gets round the host, and where
// agent/net/network/guard cannot say so a pod is not connected.
// The host and the pods ignore router advertisements from pods. An address of a Service is a few elements of maps, so the cost for
// a packet does not depend on the number of Services, nor does that of a change. What is for the cluster's own
// programs no Service touches (Translation.SetOwn), also while only rules of an earlier agent are there. Bit 0x4000 of a packet's mark is
// ours, as it is kube-proxy's. Calls block for a few netlink round trips; state that must survive a restart is the kernel's (which client
// of a Service with session affinity stays where, too), plus one small file. The translation stays when the agent
// ends, as pods do: [Uninstall] takes everything away. Tested in network namespaces made by the tests, with real packets.
package network
