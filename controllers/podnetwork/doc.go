// Package podnetwork owns the pod network: one range of IPv4 addresses and maybe one of IPv6, of each of which every node gets a
// part of the same size, and the ranges of Services beside them.
//
// What the first leader was started with is written down in the ConfigMap Name in
// kube-system, and everybody goes by that: the controller that gives nodes their ranges
// (nodeipam), and the agents, which take no others. Flags are read by Parse; Judge
// tells whether a cluster can change to them, and on the leader Write writes them down. It calls client-go only.
//
// It promises: a network is never changed to one in which a node that has a range of the former has none, and a range of
// Services never: the ServiceCIDR says what it is. A cluster of IPv4 may get ranges of IPv6; a node that is older than that has
// none until it is deleted and registers anew (nodeipam).
//
// Tests: tables; those of package server, with a real server.
package podnetwork
