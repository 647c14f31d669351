// Package noswap keeps containers from the machine's swap, as a kubelet's default (swapBehavior: NoSwap) does: what has reached its
// memory limit is killed, and does not slow the machine down.
//
// It owns the question whether the control groups of this machine count swap, and what to ask a runtime for then. Package pods calls
// it for every container, and package agent has volumes in memory kept from swap where the kernel can. It promises to ask for nothing
// that the kernel does not know: without swap accounting, resources stay as they are. Tested with folders in place of /sys/fs/cgroup;
// package agent has a real container in `make vm`, where there is swap.
package noswap
