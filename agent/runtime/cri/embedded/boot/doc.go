// Package boot turns a freshly forked process into a container's main process, into a command inside a running container, or
// into process 1 of a pod whose containers share their processes.
//
// It owns everything that must happen between fork and execve: joining cgroups, the overlay root, mounts, devices,
// pivot_root, masked paths, user, capabilities, no_new_privs and seccomp. The shim starts [Init] once per container
// and [Pause] once per such pod, the embedded runtime starts [Exec] once per command; they hand over a JSON spec on a pipe and
// read [Report]s from a seqpacket socket that closes at execve. It may call only the standard library and
// golang.org/x/sys, so that a small helper executable can be built from it.
//
// A container with users of its own is booted in two stages, and a command in it is too: the first is the host's root and opens what
// lies on the host, the second is inside the user namespace and does the rest with what it was handed (users.go, enter.go).
//
// It promises that a mount target is never resolved outside the container's root (openat2 with RESOLVE_IN_ROOT, mounts
// moved by file descriptor), that nothing is mounted on the host (all mounts live in the container's own mount
// namespace and vanish with it), that no container sees a process with the host's files or with capabilities that it
// was not granted, and that a failure is reported in one sentence before the process ends. One window is left to a container
// that may trace (SYS_PTRACE): until its execve, some microseconds, a forked command shares the memory of its parent.
//
// Needs Linux 5.12, and 6.3 for user namespaces. Tested through the embedded runtime, with real namespaces, and by attacks
// (test/escape); lookups of users and paths are tested alone.
package boot
