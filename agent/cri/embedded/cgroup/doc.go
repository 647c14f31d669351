// Package cgroup gives pods and containers their resource limits and reads what they use.
//
// It owns the control groups below the path the embedded runtime gives it, which is its only caller; it may call
// opencontainers/cgroups. It works on cgroup v1 (also hybrid) and v2. Devices are not restricted here: the container's
// mounts are nodev, which needs no BPF.
//
// It promises: creating and destroying again is no error; limits not asked for are left alone; Kill returns only when
// the group is empty or KillTimeMax has passed. Groups outlive this process and are opened again by path. Tested with
// the machine's own hierarchy, as root.
package cgroup
