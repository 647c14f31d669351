// Package node keeps one machine's Node object and its Lease.
//
// It owns: the Node's labels it was given, its addresses, capacity, conditions, nodeInfo and
// images, and the Lease of the same name in kube-node-lease. It may call: client-go, and the
// functions in Config.
//
// Promises: Run registers or adopts the Node, retrying until the API answers,
// and only then calls Config.Registered; a status is written when something
// other than a heartbeat changed, and otherwise every StatusInterval; the Lease
// is renewed every LeaseInterval and never from a second goroutine. It
// touches spec only when it makes the Node: taints, cordons and the pod CIDR belong to others.
//
// Tested with the fake clientset in synctest bubbles.
//
// It is also the room of what stands below it, the proof that a node lives: session (a stream to one server) and gossip (among all
// members). Agents and servers speak both to each other; they import nothing of the agent.
package node
