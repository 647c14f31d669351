// Command cost runs a program and notes what it took, for go test -exec.
//
//	COSTS=FILE go test -exec "$PWD/cost" ./...
//
// After each program it appends a line to FILE: seconds of processor time (of the program and of what it started and waited for), seconds
// that passed, and the folder, which for a program of tests is that of its package. The program gets the signals that stop this one, and
// its exit code is passed on. test/run.sh prints the dearest packages from these lines. Tested with programs of a shell.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// notRun is the exit code when the program could not be started.
const notRun = 127

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: COSTS=FILE cost PROGRAM ARGUMENTS...")
		os.Exit(notRun)
	}
	code, err := run(os.Args[1:], os.Getenv("COSTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
	}
	os.Exit(code)
}

// run runs a program with this one's files and environment, and appends its line. An error with the program's own exit code is one of the
// line, which spoils no test.
func run(program []string, costs string) (code int, err error) {
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The program ends with this process, also if that is killed: with its thread, that is.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return notRun, err
	}
	err = waitFor(cmd, signals)
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return notRun, err
	}
	state := cmd.ProcessState
	return exitCode(state), note(costs, state.UserTime()+state.SystemTime(), time.Since(begin))
}

// waitFor returns when the program has ended, and passes on signals until then.
func waitFor(cmd *exec.Cmd, signals <-chan os.Signal) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended
		case err := <-ended:
			return err
		}
	}
}

// exitCode is as a shell tells it of a program that a signal ended.
func exitCode(state *os.ProcessState) int {
	const signalled = 128
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return state.ExitCode()
}

// note appends a line in one write, so that programs beside each other can have one file.
func note(path string, cpu, wall time.Duration) error {
	if path == "" {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%.1f %.1f %s\n", cpu.Seconds(), wall.Seconds(), dir)
	return errors.Join(err, file.Close())
}
