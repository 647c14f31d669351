// Package pace sets how a server's process collects garbage and how often its threads
// wake, by what was measured under load.
//
// The wiring calls both of its functions once, at the start of a server; they last as
// long as the process. It calls nothing of ours.
//
// Its arithmetic is tested with a table, the threads on the kernel itself.
package pace
