// Package upstreamflags says what there is instead of the flags of upstream's API server that `setpoint server` does not have.
//
// It owns the reasons. The command adds one to the mistake of whoever brings such a flag along. The list is compared with upstream's own in
// test/differential/lists: each flag there is one of the command, or has a reason here.
package upstreamflags
