// Package announce answers ARP for addresses of load balancers that no interface of this machine has.
//
// agent/host runs one Announcer for the node; the agent hands it the addresses that this node was elected for (agent/services), and
// agent/network translates what then arrives. It calls the kernel only.
//
// It promises: no socket is open before there is an address. An address that another machine announces is that machine's until the
// next Set: who was elected heard of it, and the other did not.
//
// Tested with tables and by fuzzing of frames; agent/network's tests ask real questions from another machine.
package announce
