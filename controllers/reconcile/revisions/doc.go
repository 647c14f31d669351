// Package revisions owns the ControllerRevisions in which DaemonSets and
// StatefulSets keep the history of their templates: what they hold, how they are
// named and numbered, which are too many. It also owns the hash of a pod
// template, which Deployments use too.
//
// Data, the hashes, Sort, Equal, Next and Surplus are pure; Create, Renumber and
// Delete write one revision each.
//
// It promises: data, hashes and names are upstream's, so that a cluster moved
// here from elsewhere does not roll its pods; Create of a revision that is there
// already returns that one, so that a pass with an old cache, or a second leader,
// makes no second one; nothing is deleted but the object that was seen.
//
// Tests: values computed by upstream's code; tables; writes against the world of
// package reconciletest.
package revisions
