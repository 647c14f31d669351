// Package lists compares lists of names: what upstream's components tell, and what ours tell.
//
// Upstream's lists are read from its source, in the module cache, so that a new version of it shows by itself what is missing here: its
// stable metrics, and the reasons of its events. What is missing on purpose stands in docs/compatibility.md, each with a reason; the
// tests hold both lists against each other and against what a running cluster serves. Of ours a text counts as the reason of an event if
// the code hands it to a recorder of events, through whatever variables, fields and calls (flow_test.go).
package lists
