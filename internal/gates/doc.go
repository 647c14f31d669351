// Package gates says what becomes of each of upstream's feature gates, and judges --feature-gates.
//
// It owns the list of upstream's gates in the version whose API is served, with stage and default, and for each what Setpoint does: as
// upstream by default, or another thing, with the reason. Nothing can be switched: a flag that asks for what is done in any case is
// accepted, any other is refused by name. The commands ask it before a server starts. It imports nothing.
//
// The list is compared with upstream's own in test/differential/lists, so a new version of upstream fails there until each of its
// gates has its row; docs/compatibility.md prints the rows that differ.
package gates
