// Package announce answers ARP and NDP for addresses of load balancers that no interface of this machine has.
//
// agent/host runs one Announcer for the node; the agent hands it the addresses that this node was elected for (agent/net/services), and
// agent/net/network translates what then arrives. It calls the kernel only.
//
// It promises: of a family no socket is open before there is an address. An address that another machine announces is that machine's
// until the next Set: who was elected heard of it, and the other did not. For an address of IPv6 the machine is in the group of
// multicast in which it is asked for, as if it were its own. Of other packets of the link the filter of the socket lets none through.
//
// Tested with tables and by fuzzing of frames; agent/net/network's tests ask real questions from another machine.
package announce
