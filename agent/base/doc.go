// Package base is a room, a folder of packages: what every part of an agent uses, and what knows no other part of it.
//
// It has no code of its own. In the order in which to read what stands in it:
//
//	wait          sleeping until a context ends, which most loops do
//	backoff       growing pauses between tries
//	events        Events of pods and of the node
//	private       files and folders that only root may read
//	machine       processes and mounts of this machine; init when the agent is PID 1
//	measure       what the machine has and uses: memory, CPU, disks
//	hugepages     huge pages of the machine and of containers
//	registration  sockets of plugins, which devices, claims and CSI drivers all find in one way
//
// Its packages may import wait, machine and nothing else of this module: what knows pods belongs above. Each is tested by itself.
package base
