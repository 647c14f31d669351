// Package server is one replica of the control plane: the replicated store (raftstore), the
// API over it (apiserver), and the control loops while it leads (controllers).
//
// It wires and owns little else: the rooms below it are its parts, each with a Config of its
// own, and here stands in which order they are built, opened and stopped (Start, Stop). Options,
// parsed, Run as `setpoint server`; the library and `setpoint dev` call Start for each replica.
//
// Promises: nothing listens before there is an answer; a stop hands leadership over and lets
// requests finish; whatever a start began ends if it fails.
//
// Tested with whole servers over real sockets here, and by the scripts and test/.
package server
