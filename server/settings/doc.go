// Package settings is what the administrator decides about a whole cluster, in one struct: Options as it is written, in flags or in
// setpoint.Config, and Cluster as it is meant.
//
// It owns the way from the one to the other, Parse, which is called once for each start, before anything is opened. From there
// Cluster passes unchanged: embedded in the Config of a server, of a term and, what control loops act by, of package controllers. What
// belongs to one server, such as its name or its ports, is no setting of a cluster.
//
// Promises: an error names the flag and says what to write instead; a zero Options is upstream's default, or says what the field's
// comment says.
//
// Tested by its tests, which know every field: a field that Parse forgets, or that setpoint.Config lacks, fails.
package settings
