// Package usage says in CRI's messages what a control group has used.
//
// It owns nothing. It calls agent/runtime/cri/embedded/cgroup for what the kernel counts. It promises that what the kernel does not tell is
// missing and not zero. Tested with figures of a group.
package usage
