// Package network connects pods: a bridge per node, a veth pair per pod, addresses from the node's pod CIDR, routes to
// the pods of other nodes, host ports, masquerading for traffic that leaves the cluster, and the translation of Services' addresses.
//
// It owns the bridge, the pods' host interfaces, the routes it marks with its own protocol number, three nftables
// tables, and two rules in iptables' FORWARD chain where there is one (Docker makes that drop what it does not know).
// The embedded runtime calls [Network]; the agent's wiring calls [Routes] with the other nodes' addresses and
// [Translation] with the Services; agent/reset calls [Uninstall]. It may call netlink and nftables only: no
// CNI executables, no iptables.
//
// It promises: a pod is given a /32 and an on-link gateway, so all traffic between pods, even of one bridge, is
// routed by the host and seen by its connection tracking (Service translation needs no br_netfilter); the MAC
// address is derived from the IP, so a reused address is reachable at once; freed addresses are reused last.
// The host and the pods ignore router advertisements from pods. Services are elements of maps, so the cost for
// a packet does not depend on the number of Services. Calls block for a few netlink round trips; state that
// must survive a restart is the kernel's, plus one small file. Node ports and IPv6 are not
// provided. The translation stays when the agent ends, as pods do: [Uninstall] takes everything away. Tested in
// network namespaces made by the tests.
package network
