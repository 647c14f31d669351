// Package recording sends the events that control loops and the scheduler make, and counts what becomes of each.
//
// It owns the queue between the makers and the API. controllers.Run and the scheduler each start one for a term of leadership; it
// calls client-go's correlator, which merges repetitions and limits each object to a burst of 25, and numbers.
//
// Promises: making an event never waits; each that was made is counted as sent, merged or limited, refused, or dropped because
// more than eventsMax wait; one that no answer came for is sent again; nothing is sent after the term.
//
// Tested by a table of what may become of an event; the writers' tests see their events through it.
package recording
