// Package server is one replica of the control plane: the replicated store (raftstore), the
// API over it (apiserver), and the control loops while it leads (controllers).
//
// It wires and owns little else: the rooms below it are its parts, each with a Config of its
// own, and here stands in which order they are built, opened and stopped (Start, Stop). Options,
// parsed, Run as `setpoint server`; the library and `setpoint dev` call Start for each replica.
//
// Three of these rooms are control loops that are not in the list of package controllers, since they keep what only servers know of
// themselves: leader (terms, and the Leases that show them), kubernetesservice (the Service default/kubernetes) and serverpods (the pods
// under which the parts of servers are seen). server/term runs them.
//
// Promises: nothing listens before there is an answer; a stop hands leadership over and lets
// requests finish; whatever a start began ends if it fails.
//
// Tested with whole servers over real sockets here, and by the scripts and test/.
package server
