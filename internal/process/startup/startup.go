// Package startup keeps the garbage collector from running where it costs more than it gives back: while a program's packages are
// initialised, and in commands that soon end.
//
// A program that links Kubernetes makes some ten megabytes of schemes, tables and descriptors before main, nearly all of which lives on:
// looking through them is a quarter of the CPU time of a short command. Without collections meanwhile, the first would begin as soon as
// there is a main: of a command that ends after a tenth of a second it would be a tenth of its CPU time.
//
// It owns the collector's percentage from its own initialisation to [Done], and in short commands until the first collection. Go
// initialises packages in the order of their import paths, once those that they import are: this one, which imports next to nothing,
// comes before most of what allocates much, such as k8s.io. The command setpoint calls Done first thing in main, whatever the process is:
// shims and other helpers are the same program and live for long. It calls nothing.
//
// It promises to respect GOGC. Tested by a script of cmd/setpoint, which sees when short commands collect, and by a rule of
// internal/house, which sees that Done comes first.
package startup

import (
	"runtime"
	"runtime/debug"
)

const (
	// usual is Go's percentage without GOGC, with which the first collection begins at a heap of usualHeap MB.
	usual, usualHeap = 100, 4
	// shortHeap is where it begins in short commands, in MB. Most end below half of it.
	shortHeap = 64
)

// percent is what GOGC says, or Go's default.
var percent = debug.SetGCPercent(-1)

// Done lets the collector run as it would have without this package. If the program's arguments, args, name a command that soon ends,
// the first collection waits for a larger heap.
func Done(args []string) {
	if percent != usual || len(args) < 2 || !short(args[1]) {
		debug.SetGCPercent(percent)
		return
	}
	debug.SetGCPercent(percent * shortHeap / usualHeap)
	runtime.AddCleanup(new(*int), func(percent int) { debug.SetGCPercent(percent) }, percent)
}

// short reports whether processes of this command of setpoint end within seconds, unless somebody watches something with them.
func short(command string) bool {
	switch command {
	case "kubectl", "why", "history", "diff", "at", "undelete", "loops", "cluster", "node", "net", "images", "token", "rotate", "revoke",
		"backup", "kubeconfig", "version", "completion", "help", "--help", "--version", "__complete":
		return true
	}
	return false
}
