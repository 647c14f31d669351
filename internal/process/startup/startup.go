// Package startup keeps the garbage collector from running while a program's packages are initialised.
//
// A program that links Kubernetes makes some ten megabytes of schemes, tables and descriptors before main, nearly all of which lives on:
// looking through them is a quarter of the CPU time of a short command.
//
// It owns the collector's percentage from its own initialisation to [Done]. Go initialises packages in the order of their import paths,
// once those that they import are: this one, which imports next to nothing, comes before most of what allocates much, such as k8s.io. The
// command setpoint calls Done first thing in main, whatever the process is: shims and other helpers are the same program and live for long.
// It calls nothing.
//
// It promises to respect GOGC. Tested by a script of cmd/setpoint, which sees when short commands collect, and by a rule of
// internal/house, which sees that Done comes first.
package startup

import "runtime/debug"

// percent is what GOGC says, or Go's default.
var percent = debug.SetGCPercent(-1)

// Done lets the collector run as it would have without this package.
func Done() { debug.SetGCPercent(percent) }
