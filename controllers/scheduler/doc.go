// Package scheduler decides on which node each pending pod runs, and binds it there.
//
// It owns the decision for pods whose spec.schedulerName is that of one of its profiles: the write of pods/binding, the condition
// PodScheduled=False of pods that fit nowhere, status.nominatedNodeName, the deletion of pods that have to make room for
// pods of higher priority, the events Scheduled, FailedScheduling and Preempted, and for claims that wait for their first
// consumer either the claimRef of the volume that they get or their annotation volume.kubernetes.io/selected-node. It
// writes nothing else.
// The controllers' list calls Run for one term of leadership; the client it is given carries the fence of that term.
// It may call client-go, controllers/reconcile (for the cause its writes carry, and who counts them) and its own subpackages;
// it knows no API server and no store.
//
// A profile (package profile) is a list of plugins with weights and args. Each has an engine; all share the queue and the
// cache, so pods of all profiles see each other.
//
// The way of a pod: informer → queue (active, backoff, parked) → engine (filter and score, under one lock, no I/O) →
// assumed in the cache, its volumes promised → volumes bound by their controller → bound concurrently → confirmed by the
// watch. A bind that fails is forgotten and tried again.
// A pod that fits nowhere may have pods of lower priority evicted, as few and as unimportant as possible, and is then
// promised their room. It is parked with the set of events that could help it, and comes back when one of them happens.
//
// Promises: requests never exceed what a node can allocate, as far as the watch has told; higher priority first, then
// older first; the same world gives the same message; no polling; nothing is kept between two calls of Run.
//
// Pods share work, so the cost of a placement follows what changed, not nodes times classes. A shape, shared by all pods that ask
// the same of a node, holds each node's verdict until that node changes; a node is judged when it is looked at. A class, of
// identical pods, asks package views how many pods are where; a placed pod changes only the counts that it is part of. A class
// that fits nowhere looks again only at the nodes that changed since. Lock order: scheduler.mu, then queue.mu.
//
// Tested by tables for queue, cache and messages, by generated worlds against a plain model (worlds_test.go), and by
// the whole loop over a fake client in a synctest bubble.
package scheduler
