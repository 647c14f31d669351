// Package reset takes away what a cluster has left on this machine: the pods of a data directory, their mounts and
// cgroups, the pod network, and the directory itself, also after somebody has removed the directory first.
//
// It owns the order and the refusals; what there is to take away, the packages know that made it (agent/runtime/cri/embedded/leftovers,
// agent/net/network, agent/base/machine). `setpoint reset` calls it. It calls no API and starts nothing.
//
// Promises: nothing is changed while a server or an agent of this data directory runs, while something else is mounted
// in it, or if it is no data directory; pods of other data directories go on, and so does the network while somebody
// else uses it; doing it again takes away what is left, and changes nothing and is no error if that is nothing.
//
// Tested here as far as no root is needed, with real pods by the script reset.txtar of cmd/setpoint, and piece by
// piece in the packages that it calls.
package reset
