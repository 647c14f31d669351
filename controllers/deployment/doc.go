// Package deployment owns rollouts: it turns a Deployment's template into a
// ReplicaSet and moves replicas from the old ones to the new one within
// maxSurge and maxUnavailable.
//
// Reads: Deployments, ReplicaSets, Pods. Writes: ReplicaSets (create, scale,
// annotate, own, delete beyond the history limit), Deployment status and
// revision annotation, Events.
// Owns these fields: Deployment .status and the annotation
// deployment.kubernetes.io/revision; on its ReplicaSets .spec.replicas,
// .spec.minReadySeconds, .metadata.ownerReferences and the annotations
// deployment.kubernetes.io/{revision,revision-history,desired-replicas,max-replicas}.
//
// It promises: there are never more pods than replicas + maxSurge, whatever is changed and whatever fails meanwhile: a
// ReplicaSet grows only when no other may have pods beyond what it asks for now; available pods never fall below
// replicas - maxUnavailable by its own doing; the name of a new ReplicaSet follows from the template, so that a
// repeated creation finds the first one; nothing is written when nothing has changed. Each pass takes one step
// and the events of that step bring the next.
//
// Tests: plans as tables and generated rollouts; the whole controller in
// synctest bubbles over client-go's fake clientset; faults at every write in the
// sweep of package controllers.
package deployment
