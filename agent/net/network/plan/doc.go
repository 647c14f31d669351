// Package plan decides how the pods of one node reach those of another: by a route through a link that both nodes share, in
// VXLAN packets or encrypted ones of WireGuard between their addresses, or not at all, and why.
//
// It owns the meaning of --pod-network, the annotation by which a node tells the others what it can do ([Facts]), and the
// choice ([Choose]). agent/net/network acts on the choice, `setpoint node status` and `setpoint net trace` show it: all three
// compute it from the same two Nodes, so a node writes what is true of itself and not a list of all others. It calls nothing.
//
// It promises: the choice is the same seen from either node, so packets and their answers take one way; an annotation
// that cannot be read is like none. Pure: tested as tables.
package plan
