package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// insideCommand is the first argument of the process that is the first of a side's namespaces.
const insideCommand = "inside"

// inside makes its network, runs a program and returns its exit status. It is the first process of its
// namespace: what is left when it ends is ended by the kernel. The first argument is the file that it makes then.
func inside(args []string) int {
	if err := networkUp(); err != nil {
		fmt.Fprintln(os.Stderr, "zoo: network:", err)
		return 2
	}
	left, program := args[0], args[1:]
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if anyLeft() {
		if err := os.WriteFile(left, nil, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "zoo:", err)
		}
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

// leftFile is there, beside the output of a program, if that left processes running.
const leftFile = "left"

// A network that leads nowhere: upstream's kube-apiserver does not start without an address and a default route.
var (
	ownAddress = &net.IPNet{IP: net.IPv4(192, 0, 2, 1), Mask: net.CIDRMask(24, 32)}
	noRouter   = net.IPv4(192, 0, 2, 254)
)

// networkUp turns the loopback device on, and makes a bridge without ports.
func networkUp() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	nowhere := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "nowhere"}}
	return firstError(
		func() error { return netlink.LinkSetUp(loopback) },
		func() error { return netlink.LinkAdd(nowhere) },
		func() error { return netlink.AddrAdd(nowhere, &netlink.Addr{IPNet: ownAddress}) },
		func() error { return netlink.LinkSetUp(nowhere) },
		func() error { return netlink.RouteAdd(&netlink.Route{LinkIndex: nowhere.Index, Gw: noRouter}) },
	)
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
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
