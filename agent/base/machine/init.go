package machine

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	initPID = 1
	// childMark tells the child of Init that it is not the first process.
	childMark       = "SETPOINT_UNDER_INIT"
	exitCannotStart = 125
	signalExitBase  = 128
)

// Init is the first process of a container: it starts this program again as its
// child and reaps whatever loses its parent, which the program itself must not,
// since it waits for its own children. It returns at once in any other process,
// and never in the first.
func Init() {
	if os.Getpid() != initPID || os.Getenv(childMark) != "" {
		return
	}
	os.Exit(runInit())
}

func runInit() int {
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Args[0] = os.Args[0]
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), childMark+"=1")
	if err := child.Start(); err != nil {
		return exitCannotStart
	}
	passSignals(child.Process)
	return reap(child.Process.Pid)
}

func passSignals(child *os.Process) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range signals {
			_ = child.Signal(s) // it may have ended
		}
	}()
}

// reap waits for every process until the child itself has ended.
func reap(child int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return exitCannotStart
		case pid == child && status.Signaled():
			return signalExitBase + int(status.Signal())
		case pid == child:
			return status.ExitStatus()
		}
	}
}

// InContainer reports whether this program runs under Init.
func InContainer() bool { return os.Getenv(childMark) != "" }
