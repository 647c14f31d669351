// Package wireguard makes a WireGuard device and tells it its peers: one end of encrypted ways between nodes.
//
// It owns the device, the node's private key ([Key]) and the process that is the device on kernels that have none: that
// process has the device's file and a socket from us, no privileges, and outlives us, so connections of pods outlive a
// restart of the agent. agent/net/network calls it, and says which nodes are peers and what addresses they may use.
//
// It promises: [Device.Set] changes only what differs, so established connections stay; a packet goes to and is taken from
// a peer only if the address of its pod is in the peer's range; the private key is in one file, which only root reads.
//
// What a device lacks is decided by [changes], which is pure: tested as a table. A device of each kind that the machine has
// is tested in network namespaces: packets between two of them, kills and restarts.
package wireguard
