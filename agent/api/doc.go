// Package api is a room, a folder of packages: what a node serves to others.
//
// It has no code of its own. In the order in which to read what stands in it:
//
//	kubeletapi    a kubelet's port: logs, exec, metrics, the proxy to pods; kubeletapi/access says who may ask
//	podsapi       the socket at which programs on the node ask which pods it has and how they are
//	podresources  the socket at which monitors ask which pod has which devices, CPUs and memory
//
// Its packages read only, and ask those who know by interfaces. They may import what these tell in: agent/base, agent/runtime,
// devices/ledger and topology/memory of agent/resources, volumes/local, and probes and status of agent/pods. None of the rooms below
// imports them. Tested over real sockets, with made-up pods.
package api
