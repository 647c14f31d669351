// Package serve puts a container runtime of this process on a unix socket, as the Kubernetes Container Runtime
// Interface v1: for crictl, critest, or a kubelet of others.
//
// It owns the socket and the gRPC server behind it, and no state of pods: each call goes to the [cri.Runtime] that
// it was given. It serves `setpoint cri`; it may call package cri, agent/base/private and the published CRI modules.
//
// It promises: only the owner of the process, root, can connect (the socket has mode 0600, its folder 0700); a socket
// that nobody serves is replaced, one that somebody serves is refused with [ErrServed], and so is anything that is no socket; when
// ctx ends, calls that are under way are given a while, then cancelled, and no container is stopped. An ExecSync whose
// command failed is an answer with an exit code, not an error. Lists are streamed in messages of bounded size
// as well. Exec, Attach and PortForward answer with URLs of the runtime, which
// stay on loopback.
//
// Tested through upstream's client against a runtime that records what it is asked; with real containers by
// cmd/setpoint, and by critest (test/critest).
package serve
