// Package host makes this machine a node: it joins the cluster, opens the container runtime and
// runs the agent on it.
//
// It owns the flags of `setpoint agent` (Options, Run), one node in this process (RunNode, which
// `setpoint dev` calls too), how an agent shows that it lives (RunLiveness), and the runtime alone
// on a socket for kubelets of others (CRIOptions, RunCRI), and the way of `setpoint images` to the
// image store (OpenImages). cmd/setpoint calls it, and says what the
// node must know of its cluster (Cluster). It calls agent and what is below, internal/trust and
// internal/failover; nothing of servers.
//
// Promises: containers outlive Run and RunCRI, of which one data directory has one at a time; a
// valid certificate needs no token; routes lead only to nodes whose address can be read.
//
// Tested over real sockets in package server, by the scripts, and by test/machines.
package host
