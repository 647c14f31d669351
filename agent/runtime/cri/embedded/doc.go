// Package embedded is the default container runtime: real OCI containers in this process and one small shim process
// per pod, with nothing installed on the machine.
//
// It owns the runtime's data directory (images, sandboxes, containers), the node's bridge and cgroup subtree (with
// GivenCgroups the groups of pods, below their callers'), and the shims. The agent calls it as a cri.Runtime and
// cri.Streamer; it may call its sub-packages and agent/net/network. Programs that link it call [ReexecMain] first thing in main: shims,
// container inits and execs are the same executable under other names.
//
// It promises: containers, their logs and exit codes survive a restart of the agent (New finds them again); an
// exit is announced at once through GetContainerEvents; a container whose shim died is reported as exited with
// code 137 and reason Unknown, never as running; a damaged record costs its own pod, which is ended and can be
// made anew, and nothing else; every call after which something may be left half done can be repeated; after a
// removal no mount, interface, cgroup or process is left. Errors carry gRPC codes. Needs root and Linux 5.12.
// Checkpoint and restore are refused (Unimplemented).
//
// Lock order: the table's mu before a sandbox's or container's mu; neither is held while a process is waited for.
//
// [Runtime] has the lives of sandboxes and containers. Which there are is the table's (table.go), what CRI is told of them the reporter's
// (status.go, stats.go), questions about images the imageService's, control groups of pods the groups' (limits.go, classes.go).
//
// Tested as root with real namespaces, the test executable being image, shim and workload at once.
package embedded
