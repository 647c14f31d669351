// Package contact says whether a server of the cluster still has a leader.
//
// It owns one figure, when a read was last proved, and the verdict that follows from it. The store tells it of
// proofs and asks it before anybody waits; sessions, watches, requests and health follow the verdict. It imports
// nothing of ours.
//
// Promises: a server that knows no leader counts as without one LostAfter after its last proof, one whose leader
// answers no read UnansweredAfter after it. A proof ends that at once. Contexts of Led end exactly then, all of one
// period together. Any method may be called from any goroutine.
//
// Tested by a table, and through raftstore in bubbles of fake time with cut links.
package contact
