// Package pods runs a pod on each node of the cluster that test/consistency examines, and tells which of them were harmed.
//
// It owns the check of a promise: no fault of the control plane kills a healthy workload. The agents run, and reach the servers
// whatever is done to those, so no pod may end, be started anew or be replaced. The pods tolerate the loss of their node for a few
// seconds only, so a node that is wrongly taken for lost is seen by its pod. test/consistency calls it, through cluster.Cluster;
// tested with a fake client.
package pods
