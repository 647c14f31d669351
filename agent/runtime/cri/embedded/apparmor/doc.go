// Package apparmor says under which AppArmor profile a container of the embedded runtime runs.
//
// It owns the default profile (profile.go), which the node's apparmor_parser compiles and loads when the runtime starts,
// and the choice between that, a profile that the node has loaded itself, and none (apparmor.go). The runtime calls it when it
// starts, and when it makes a container; the container's own process takes the profile on, in package boot. It calls nothing of the module.
//
// It promises: a container that names a profile runs under it or is not made, with the reason. One that names none runs under the
// default where that can be loaded, as with containerd, and unconfined elsewhere, which the runtime tells at its start and in its status.
// Tested with folders in place of the kernel's and a script in place of apparmor_parser; package embedded confines real containers where
// the kernel can (`make vm`).
package apparmor
