// Package simulated runs many nodes without machines: their pods become Running
// and Ready without containers, and those that end by themselves (restartPolicy Never or OnFailure) do so
// after a second, after the time that their command sleeps, or as their annotations say. What they seem to
// use is what they request, or what annotations say (Summary). Readiness gates hold a pod's readiness as they do anywhere.
// A resize is carried out at once, or when the node has what it asks for.
// A pod whose containers were made to crash (Crash) is left so until Mend takes that back.
//
// It owns: the Nodes it registers (labelled Label), their Leases, and the status of the pods bound to them. It may call:
// client-go only.
//
// Promises: one informer for Nodes and one for pods whatever the number of
// nodes, of its own or as it is given them; a bound pod is Running one status patch later, a deleted pod is
// confirmed one request later, nothing is polled; Leases are renewed evenly over
// the interval, never in a burst; Run returns after its last goroutine and leaves
// the Nodes in place, so the next Run adopts them.
//
// Tested with the fake clientset in synctest bubbles.
package simulated
