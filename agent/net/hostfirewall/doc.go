// Package hostfirewall keeps pods from the ports of their nodes that nobody promised them.
//
// It owns the list of ports of this machine that pods reach (Ports), and the nftables tables setpoint-BRIDGE-host, one for each version
// of IP. An agent starts Watch; what makes the machine a node makes the Table. It may call client-go.
//
// Open are: the agent's port, which asks for credentials; the cluster's DNS; the ports that pods with hostNetwork declare; each port
// that is an endpoint of a Service at an address of this node, such as the API; health check ports of Services; the ports of Ingresses
// and Gateways. Node ports and host ports need no opening: they are translated before. Answers to what the machine began, and ICMP,
// pass. All else is refused at once, by a reset or an ICMP error, so that clients do not hang.
//
// It judges what comes from the bridge of this machine's pods, by addresses of the link too, so there is a table of IPv6 whatever ranges
// the cluster has; and what comes from addresses of pods: those of other nodes, which agent/net/network/nodeway lets reach a node as
// themselves. It promises: rules stay while no agent runs; the keeper of agent/net/network/upkeep puts back what others remove
// (Watch.Thing), once the cluster's Services are known; a change of ports is one transaction of each table, and no older list replaces a
// newer one. On a node without rules only the agent's own ports are open until it knows the cluster's Services, from before the first pod
// on.
//
// Ports is tested as a table, the rules with real packets between network namespaces, Watch in a bubble.
package hostfirewall
