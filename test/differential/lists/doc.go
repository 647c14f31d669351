// Package lists compares lists that upstream keeps in its source with ours: what a client or an administrator meets by name. A new version
// of upstream fails here until somebody has decided what becomes of what it adds.
//
//	what the API offers           resources of discovery, columns of tables
//	what an administrator sets    feature gates, admission plugins, flags, roles
//	what components tell          stable metrics, reasons of events, health checks
//
// Upstream's files are read in the module cache, not linked. The tests say which row is missing, and where it belongs: what is missing on
// purpose stands with its reason in docs/compatibility.md, in the product's own table (internal/gates, apiserver/admission/choice,
// cmd/setpoint/upstreamflags), or beside the test. Metrics and health checks are asked of a running cluster; the rest is read from the
// packages that have it. Of ours a text counts as the reason of an event if the code hands it to a recorder of events, through whatever
// variables, fields and calls (flow_test.go).
package lists
