// Package vm runs tests of this module on another kernel: Debian's, in Debian's qemu, with a program of ours as init.
//
// It is for what the kernel at hand lacks: cgroup v2 with all its controllers, AppArmor, SELinux, WireGuard's device, SCTP, huge
// pages of cgroup v2, pressure, user namespaces on other file systems. `make vm` calls run.sh (README.md says how), which
// builds the test binaries that packages.txt names, puts them on a disk, boots, and judges what the console says.
//
// This package owns the parts of it that are pure: the archive that a kernel boots from (archive.go), which modules it loads in
// which order (modules.go), what is run (plan.go), and whether it passed (verdict.go). Package pack, on the machine, and package
// init, in the virtual one, call it. It promises that a run which ends early, whose init panics, or in which a package ran no
// test never counts as passed. Its own tests are tables, and part of `make test`; no test of it starts a virtual machine.
package vm
