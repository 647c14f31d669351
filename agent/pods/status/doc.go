// Package status says what a pod's status is, and gets it into the API.
//
// It owns: the fields of PodStatus that a kubelet writes. It may call:
// client-go; it reads observed.Pod.
//
// Promises: Generate is pure: the same Input gives the same status, and the same
// status is never sent twice. The Manager sends the newest status of each pod
// until the API accepts it, at most one request for each pod at a time, merging
// what changed meanwhile; conditions of others are kept; a status for a uid that
// the API no longer has is dropped. Changes a user waits for (phase, readiness,
// a termination) leave at once, the rest after Debounce.
//
// Tested with tables (Generate) and the fake clientset in bubbles (Manager).
package status
