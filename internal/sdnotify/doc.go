// Package sdnotify tells the service manager that started this process how it is: systemd, by sd_notify(3).
//
// It owns what is told and when (Service): once that the process is ready, again and again that its main parts make progress, and that
// it stops. It does not own what progress is: server and agent/host, which call it, bring that as a function. The datagrams are
// go-systemd's. It calls nothing of ours.
//
// Promises: where no service manager asks, nothing is told and nothing runs; the watchdog hears of a process only after its parts have
// answered in time, so that one that hangs is ended, with the stacks of its goroutines in its log, and started again.
//
// Tested in a synctest bubble, over a socket by the script service of cmd/setpoint, which runs the real binary.
package sdnotify
