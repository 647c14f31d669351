package machines

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// insideEnv marks the test binary that has a network namespace of its own.
	insideEnv = "SETPOINT_MACHINES_INSIDE"
	// bootEnv marks the test binary that is the first process of a machine; its value says what to start.
	bootEnv = "SETPOINT_MACHINES_BOOT"
)

// Missing says why machines cannot run here, nil if they can.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("namespaces, mounts and cgroups need root")
	}
	return nil
}

// Main runs the tests of a package that uses machines and returns the exit code.
func Main(m *testing.M) int {
	if text := os.Getenv(bootEnv); text != "" {
		return boot(text)
	}
	if Missing() != nil || os.Getenv(insideEnv) != "" {
		return m.Run()
	}
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideEnv+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "a network namespace for the tests:", err)
		return 1
	}
	return 0
}
