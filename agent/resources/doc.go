// Package resources is a room, a folder of packages: CPUs, memory and devices that a pod has for itself.
//
// It has no code of its own. In the order in which to read what stands in it:
//
//	topology  NUMA nodes: hints from where resources can come, and the policies that merge them; topology/cpus and topology/memory
//	          choose
//	pinning   who has CPUs and memory of its own, and the state files
//	devices   the devices of device plugins; devices/ledger chooses
//	claims    the DRA drivers of a node, asked to prepare the claims of its pods
//
// What chooses is pure, and is compared with a kubelet's managers. The managers may import agent/base, and podconfig and observed of
// agent/runtime; workers of pods call them, and they know none. Tested with tables, and with plugins that tests make.
package resources
