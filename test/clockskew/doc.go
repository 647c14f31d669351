// Package clockskew sets the wall clock of one running process forward or back, for
// the nemesis of test/consistency.
//
// Programs read the clock from a page of code that the kernel maps into each process
// (the vDSO), not by a system call. Set replaces the function there, in that process
// alone, by one that asks the kernel and adds the offset. The monotonic clock is left as
// it is, as when an administrator or NTP sets the time. Time namespaces do not move
// the wall clock, and preloaded libraries do not reach a static binary.
//
// It needs root (or the right to trace the process) and amd64. Its test sets the clock
// of a process of its own.
package clockskew
