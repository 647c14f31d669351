// Package nodeway leads pods to the addresses of other nodes as they are led to those nodes' pods, and with their own addresses: the
// firewall of a node (agent/net/hostfirewall) sees that it is a pod that asks. Otherwise the source would be replaced by the address of the
// pod's node, and nobody could tell a pod from its machine.
//
// It owns the routing table [Table], the rules of the kernel that lead the node's pods there, and the nftables table setpoint-BRIDGE-nodes
// of each family. agent/net/network's Routes calls it, with the ways that it has chosen.
//
// It promises: a packet to a node's address goes to nobody but the node that says that it has it: in the tunnel to it, or by the machine's
// own route where both nodes share a link. It believes what Nodes say of their addresses, as far as the API lets them say it
// (apiserver/admission/nodeaddress.go): none takes the address of a Node that is Ready, of a pod or of a Service, but a stolen node gets
// what pods send to an address outside the cluster that it tells as its own. The way to an address is what the kernel has to know already
// to lead to a node's pods, so the machine's reverse path filter lets answers in.
//
// Tested with real packets between two nodes in agent/net/network.
package nodeway
