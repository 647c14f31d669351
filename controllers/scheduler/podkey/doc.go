// Package podkey tells which pods are interchangeable for the scheduler, and which ask the same of a node.
//
// The scheduler's queue compares keys to see whether a new version of a pod would be judged differently; its engine finds by them
// the shape and the class of a pod. A plugin that begins to look at another field of a pod adds that field here.
//
// Promises: pods with equal keys get the same verdicts, scores and reasons from every plugin as long as the world is the same; a
// key does not depend on the pod's name or uid. Pure functions.
//
// Tested by a table; by changing each field of a PodSpec, which changes the key or is on a list with the reason why not; and by
// the generated worlds of package scheduler, which place each pod with and without what equal pods have left behind.
package podkey
