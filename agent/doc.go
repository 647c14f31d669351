// Package agent runs the pods of one machine: what the kubelet is elsewhere.
//
// It owns: the wiring of its sub-packages into one Run. Each has its own concern: node (the Node object
// and its Lease), pods (a worker for each pod), podconfig (spec to CRI), images, volumes, probes, status
// (into the API), kubeletapi (the kubelet's endpoints), services (addresses of Services), router
// (Ingresses), dns (names of the cluster), resolvconf, network, logs (their rotation), events, backoff,
// observed (what the runtime says), eviction (pods that use too much), collect (images that nobody uses),
// wait, simulated (nodes without machines). It may call: client-go for the cluster and CRI for
// containers; what it asks of the kernel is in packages of their own.
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
