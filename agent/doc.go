// Package agent runs the pods of one machine: what the kubelet is elsewhere.
//
// It owns the wiring of its rooms into one Run. A room is a folder with a map of its own in its doc.go. From the ground up; each may
// import those before it, where the table of rooms_test.go says so, and none after it:
//
//	base       what every part uses: waiting, events, files, figures of the machine, sockets of plugins
//	net        the network of a node: links and addresses of pods, Services, policies, names, Ingresses
//	runtime    the container runtime, and what is asked of it: CRI, images, a pod's spec as a runtime takes it
//	resources  CPUs, memory and devices that a pod has for itself
//	volumes    volumes of pods: the agent's own, local disks, CSI drivers
//	pods       the life and the end of pods: a worker for each, admission, probes, status, eviction, shutdown
//	node       the Node, and the proof that it lives: Lease, sessions, gossip
//	api        what a node serves to others: the kubelet's port, sockets for programs on the node
//
// Beside the rooms stand kubeletconfig (a kubelet's configuration, for all rooms), simulated (nodes without machines), host (what makes
// this machine a node; it calls Run) and reset (what a cluster has left on a machine).
//
// A newcomer reads Run in agent.go first, then newPodRunner in podrunner.go, then pods. The other files here each wire one thing:
// services.go Services and policies, dns.go names, ingress.go Ingresses, hostfirewall.go ports of the machine, storage.go volumes,
// podlogs.go where logs of pods are, plugins.go devices, claims and the plugins' sockets, pinning.go CPUs and memory, kubeletport.go the
// kubelet's port, conditions.go the conditions of the Node beside upstream's, nodewatch.go what is learned of Nodes, layerpeers.go
// images from other nodes.
//
// It may call client-go for the cluster and CRI for containers; what it asks of the kernel is in packages of their own.
//
// Promises: Run blocks until every goroutine it started has ended. Ending the
// agent ends no container: the next Run finds them by their labels and goes on.
// A pod never starts from a list that is older than one acted upon, also by an
// earlier Run: the first list is a linearizable read, later ones are never older
// than it. Nothing is removed before the first complete list.
//
// Tested with the fake clientset and a fake runtime in synctest bubbles, and
// with real containers in namespaces of the test's own; the parts with their own
// tables.
package agent
