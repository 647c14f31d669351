// Package install is `setpoint install` and `setpoint uninstall`: it makes this machine a server or a node of a cluster, or undoes that.
//
// It owns what is put where (layout.go), the file with what differs from machine to machine (environment.go), and the order: first
// everything is judged that can be judged, then the machine joins, so that a refusal is told here and changes nothing, then files are
// written, and last the unit is started and waited for. The units are deploy/systemd's; joining is server.Join's and internal/trust/join's;
// agent/reset takes away data. Without systemd it does all but start, and says what to run.
//
// Promises: a token is used and not kept; installing again replaces binary and unit and keeps settings, keys and data; what belongs to
// another cluster is never touched; data go with --purge alone.
//
// Tested below a folder here, and on machines that are namespaces by test/machines, which types the three lines.
package install
