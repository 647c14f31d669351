// Package pace holds the control loops of one server for people who want to look: it pauses a loop, lets one pass of it through, and has
// it go on.
//
// It owns the Pace, which has a Gate for each queue. Whoever runs passes (reconcile.Run, the scheduler) asks the Gate of its queue before
// each; package server/admin orders. Only a server that was made for learning has a Pace; a nil Pace has nil Gates, which let everything
// through without a lock.
//
// It promises: a paused loop begins one pass for each step, and no others; a step for which there is no work yet waits for some; a pass
// that has begun is not held; a pause is in memory alone and ends with the term of the leader (Begin, End), so that it reaches no other
// term, server, start or cluster. What waits keeps its place in its queue, and passes read what is true when they begin.
//
// Tests run in synctest bubbles.
package pace
