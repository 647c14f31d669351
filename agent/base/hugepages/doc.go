// Package hugepages says what a pod's huge pages are: which the machine has, which limits containers get, and which a volume is made of.
//
// The node's status, the memory manager, the runtime's configuration and volumes call it; it reads files of /sys that its callers open,
// and mounts nothing. Names, rules and messages are a kubelet's. Tested with tables.
package hugepages
