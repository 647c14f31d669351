// Package eventttl deletes old Events, which nothing else deletes.
//
// Reads: Events (core/v1). Writes: Events (delete).
//
// It promises: an Event goes an hour after it was last seen, at most a minute
// later; one that is seen again meanwhile stays, because the deletion names the
// version it judged; a pass deletes a bounded number, so that a backlog cannot
// crowd out other writes; while no Event is due nothing is written.
//
// Tests: the plan as a table; the whole controller in a synctest bubble over
// client-go's fake clientset.
package eventttl
