// Package reap waits for children of this process without a thread for each.
//
// os/exec waits in a system call, which keeps a thread with its stacks, some 50 KiB, as long as the child lives: a node has a shim for
// each of its pods. It calls the system only.
//
// It promises what exec.Cmd.Wait does. On a kernel whose process descriptors cannot be waited for by a poller, it is that.
//
// Tested with children that end sooner and later, and by counting threads.
package reap
