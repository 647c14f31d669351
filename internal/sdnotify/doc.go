// Package sdnotify tells the service manager that started this process how it is: systemd, by sd_notify(3).
//
// It owns what is told and when (Service): once that the process runs, what it does, again and again that it makes progress, and
// that it stops. It does not own what progress is: server and agent/host, which call it, bring that as a function. The environment is read
// by go-systemd, whose sender has no deadline. It calls nothing of ours.
//
// Promises: where no service manager asks, nothing is told and nothing runs; a manager that does not read holds the
// process for a second at most; children do not inherit it; the watchdog hears of a process only after its parts have
// answered in time, so that one that hangs is ended, with the stacks of its goroutines in its log, and started again.
//
// Tested in a synctest bubble, over a socket by the script service of cmd/setpoint, which runs the real binary.
package sdnotify
