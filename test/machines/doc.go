// Package machines runs a cluster on three machines, each with a server and an agent, as the README sets it up, and does
// to a machine what a data centre does: cut it off, pause it, turn it off.
//
// It owns the machines. A machine is a process tree in network, mount, process and host name namespaces of its own: one
// kernel, three of everything else. Its first process (boot.go) starts `setpoint server` and `setpoint agent` with
// the README's flags and defaults, so that both share one data directory and one address. A bridge in the namespace of the
// test joins the machines; there is no default route. Pods are real containers of the embedded runtime.
//
// Bare machines (NewBare) have nothing but the binary: there `setpoint install` is typed.
//
// Tests call it: TestMain calls Main, which moves the test binary into a network namespace of its own, and a test calls
// New. It needs root, and Missing says so. When the test ends, in whatever way, the kernel ends the machines; Close
// removes their control groups.
//
// Its own tests are the proof of what README and docs/operations.md promise about the loss of a machine, and about replacing all servers.
package machines
