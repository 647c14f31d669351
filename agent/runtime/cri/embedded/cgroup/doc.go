// Package cgroup gives pods and containers their resource limits and reads what they use.
//
// It owns the control groups below the path the embedded runtime gives it. That and leftovers call it; it may call
// opencontainers/cgroups. It works on cgroup v1 (also hybrid) and v2, where devices are restricted by a BPF program.
//
// It promises: creating and destroying again is no error; limits not asked for are left alone; Kill returns only when
// the group is empty or KillTimeMax has passed. Groups outlive this process and are opened again by path. Tested with
// the machine's own hierarchy, as root.
package cgroup
