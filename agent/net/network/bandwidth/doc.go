// Package bandwidth limits what a pod receives and sends, as its annotations say.
//
// It owns the queues of a pod's interface on the host, and a device for each pod that sends with a limit. agent/runtime/cri/embedded reads
// the annotations; agent/net/network applies the limits to a pod's pair and removes the device with the pod. It calls the kernel only.
//
// It promises: a limit that cannot be kept is an error, and the pod is not connected. Nothing of it outlives the pod, and RemoveAll
// finds what an agent that was killed has left.
//
// Annotations are tested with a table; the kernel's own counters prove the limits in agent/net/network's tests.
package bandwidth
