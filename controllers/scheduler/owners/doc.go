// Package owners finds the pods that belong together with a pod, so that they are spread: those of the same Services, and of the
// same ReplicaSet, ReplicationController or StatefulSet.
//
// The scheduler and its Judge ask for each pod that they try. It reads informers only. Of the Services it keeps an index by a label
// that they select by, so that those of a pod are found among thousands.
//
// Promises: what has not been seen yet counts as absent, for spreading is a preference. It is safe for concurrent use.
//
// Tested by tables here, and through the scheduler by the worlds of test/differential.
package owners
