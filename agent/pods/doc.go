// Package pods runs the pods bound to this node, one goroutine for each.
//
// It owns: everything the runtime holds under our labels, and the order of steps in a pod's life. It may call: CRI, and the sibling
// packages for images, volumes, probes and status.
//
// How it works: a worker looks at the API object and at the runtime, asks plan,
// a pure function, for the next step, publishes the status, takes the step, and
// looks again. It keeps nothing that a restart of the agent must not lose: what
// runs, ran and how often is read from the runtime; only pauses start over.
// Steps that take long (pulls, hooks, grace periods) run beside the worker, so a
// deletion can cut them short.
//
// Before anything of a pod runs, podfields says whether it sets a field that this
// node does not honour: then it fails with that reason. Of one controller's pods
// the first fails at once and the next ones later and later.
//
// What a pod may use of the node is its allocation: its spec as it was when the
// node had room for it. Every step works on the pod as it is allocated; a resize
// (KEP-1287) changes the allocation first, then the cgroups, larger ones from the
// outside to the inside and smaller ones the other way.
//
// Devices of plugins, CPUs and memory of a pod's own are chosen and claims are prepared before the sandbox is made. They are given back
// when no container runs or will, and until then the API hears of no end of the pod: others could get them.
//
// An evicted pod fails when none of its containers runs; then its files are removed,
// since the object may stay for long.
//
// Promises: containers that run when the agent starts are left alone; pods the
// API does not know are removed, but only after the first complete list; a pod
// is deleted from the API when nothing of it is left on the node. No step is
// driven by polling when the runtime reports events.
//
// Tested with a fake runtime and the fake clientset in synctest bubbles; plan
// with tables.
//
// It is also the room of what stands below it. In the order in which to read: admission (whether the node takes a pod), probes, status
// (into the API), staticpods (pods from files), eviction and shutdown (ends that are the node's doing). None of them imports this
// package: they see the workers through interfaces. They may import agent/base, cri, observed and podconfig of agent/runtime, and status.
package pods
