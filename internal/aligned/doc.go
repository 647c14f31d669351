// Package aligned makes loops that look at something now and then do so at the same moments: whole multiples of their intervals.
//
// It owns the arithmetic. A thread that wakes up costs an idle server more than what it then does: nine loops, each once a second, at
// moments of their own, were nine of its forty wake-ups a second. It imports nothing of ours.
//
// Promises: Until is more than nothing and at most the interval, whatever the clock says, so a clock that is set costs one pause at most.
//
// Tested by tables, and in a bubble that counts the moments at which loops wake.
package aligned
