// Package demo is the web server inside the demo images: enough to watch rollouts, readiness, restarts and logs.
//
// It owns its port. The executable calls [Main] when started as "setpoint demo"; it may call the standard library only.
// It promises one log line per start, request and stop on standard output, and an orderly end on SIGTERM. Tested
// through its handler and as a whole server.
package demo
