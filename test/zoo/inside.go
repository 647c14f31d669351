package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// insideCommand is the first argument of the process that is the first of a side's namespaces.
const insideCommand = "inside"

// inside turns the loopback device on, runs a program and returns its exit status. It is the first process of its
// namespace: what is left when it ends is ended by the kernel.
func inside(args []string) int {
	if err := loopbackUp(); err != nil {
		fmt.Fprintln(os.Stderr, "zoo: loopback:", err)
		return 2
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if anyLeft() {
		fmt.Fprintln(os.Stderr, leftProcesses)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		return 2
	}
	return 0
}

// leftProcesses is the line in the output of a program that left processes running.
const leftProcesses = "zoo: it left processes behind, which are ended now"

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(uint16(net.FlagUp))
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// anyLeft says whether another process of this namespace still runs.
func anyLeft() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return false
		}
		if pid <= 0 {
			return true
		}
	}
}
