// Package startup keeps the garbage collector from running while a program's packages are initialised.
//
// A program that links Kubernetes makes some ten megabytes of schemes, tables and descriptors before main, nearly all of which lives on:
// looking through them is a quarter of the CPU time of a short command.
//
// It owns the collector's percentage from its own initialisation, which Go does as soon as it is through with what this package imports,
// to [Done]. The command setpoint calls it, first thing in main once it knows that the process is no helper of a pod. It calls nothing.
//
// It promises to respect GOGC. Tested by a script of cmd/setpoint, which sees when a short command collects.
package startup

import "runtime/debug"

// percent is what GOGC says, or Go's default.
var percent = debug.SetGCPercent(-1)

// Done lets the collector run as it would have without this package.
func Done() { debug.SetGCPercent(percent) }
