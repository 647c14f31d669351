package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// udpWait is how long nc waits for an answer by UDP if it is not told.
const udpWait = 5 * time.Second

var errUsage = errors.New("want a host and a port")

// nc sends what it reads and prints what it gets. By UDP it ends with the first answer.
// What listens is left to busybox.
func nc(args []string) (code int, err error) {
	if slices.ContainsFunc(apart(args), func(a string) bool { return a == "-l" }) {
		return 1, syscall.Exec("/bin/busybox", append([]string{"nc"}, args...), os.Environ())
	}
	f := flag.NewFlagSet("nc", flag.ContinueOnError)
	verbose, udp, _ := f.Bool("v", false, ""), f.Bool("u", false, ""), f.Bool("t", false, "")
	scan, _ := f.Bool("z", false, ""), f.Bool("n", false, "")
	wait := f.Float64("w", 0, "")
	if err := f.Parse(apart(args)); err != nil {
		return 1, err
	}
	if f.NArg() != 2 {
		return 1, errUsage
	}
	network := "tcp"
	if *udp {
		network = "udp"
	}
	conn, err := net.DialTimeout(network, net.JoinHostPort(f.Arg(0), f.Arg(1)), seconds(*wait))
	if err != nil {
		return 1, err
	}
	defer conn.Close()
	if *verbose {
		fmt.Fprintf(os.Stderr, "Connection to %s %s port [%s/*] succeeded!\n", f.Arg(0), f.Arg(1), network)
	}
	if *scan {
		return 0, nil
	}
	if *udp {
		return datagram(conn, seconds(*wait))
	}
	return stream(conn, seconds(*wait))
}

func datagram(conn net.Conn, wait time.Duration) (int, error) {
	sent, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1, err
	}
	if _, err := conn.Write(sent); err != nil {
		return 1, err
	}
	if wait == 0 {
		wait = udpWait
	}
	answer := make([]byte, 1<<16)
	_ = conn.SetReadDeadline(time.Now().Add(wait))
	n, err := conn.Read(answer)
	_, _ = os.Stdout.Write(answer[:n])
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// stream ends when the other side does, or is silent for too long.
func stream(conn net.Conn, wait time.Duration) (int, error) {
	sent, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1, err
	}
	if _, err := io.Copy(conn, bytes.NewReader(sent)); err != nil {
		return 1, err
	}
	if wait > 0 {
		_ = conn.SetReadDeadline(time.Now().Add(wait))
	}
	_, err = io.Copy(os.Stdout, conn)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return 0, nil
	}
	return 0, err
}
