// Package replicationcontroller owns the number of pods of each
// ReplicationController, which is a ReplicaSet in all but name: it shows them to
// the controller of package replicaset as such, as Kubernetes does.
//
// It lets replicaset do the work.
//
// Reads: ReplicationControllers, Pods. Writes: Pods (create, delete,
// ownerReferences), ReplicationController status, Events.
// Owns these fields: ReplicationController .status (all of it); on pods that it
// creates, .metadata.generateName and .metadata.ownerReferences.
//
// It promises what replicaset promises; conversion loses nothing that one of the
// two needs.
//
// Tests: the conversion there and back; the controller in a bubble.
package replicationcontroller
