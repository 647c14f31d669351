package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

type serversKey struct{}

// initServers reserves N addresses as $ADDR1 and so on, names the first three as
// servers in $SERVERS, and writes their trust folder, whose kubeconfig is $KUBECONFIG.
func initServers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: init-servers N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	var servers []string
	for i := range n {
		address := freeAddress(ts)
		ts.Setenv(fmt.Sprintf("ADDR%d", i+1), address)
		if i < 3 {
			servers = append(servers, fmt.Sprintf("server-%d=%s", i+1, address))
		}
	}
	ts.Setenv("SERVERS", strings.Join(servers, ","))
	ts.Check(ts.Exec("setpoint", "cluster", "init", "--servers", strings.Join(servers, ","), "--out", "trust"))
	ts.Setenv("KUBECONFIG", ts.MkAbs("trust/admin.kubeconfig"))
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(ts *testscript.TestScript) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer listener.Close()
	return listener.Addr().String()
}

// startServer starts a server of $SERVERS, with its data in a folder of its name.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: start-server NAME FLAGS...")
	}
	running := ts.Value(serversKey{}).(map[string]*cluster)
	c := &cluster{}
	ts.Check(c.start(ts, append([]string{
		"server", "--name", args[0], "--data-dir", args[0], "--initial-servers", ts.Getenv("SERVERS"),
		"--trust-dir", "trust", "--gossip-address=",
	}, args[1:]...)))
	running[args[0]] = c
	ts.Defer(func() {
		if c.cmd != nil { // the script did not come to its end
			_ = c.end(syscall.SIGKILL)
			ts.Logf("%s said:\n%s", args[0], c.output.String())
		}
	})
}

func stopServer(ts *testscript.TestScript, neg bool, args []string) {
	endServer(ts, neg, args, syscall.SIGTERM)
}

func killServer(ts *testscript.TestScript, neg bool, args []string) {
	endServer(ts, neg, args, syscall.SIGKILL)
}

func endServer(ts *testscript.TestScript, neg bool, args []string, signal syscall.Signal) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stop-server NAME, kill-server NAME")
	}
	c := ts.Value(serversKey{}).(map[string]*cluster)[args[0]]
	if c == nil {
		ts.Fatalf("%s was not started", args[0])
	}
	if err := c.end(signal); err != nil && signal == syscall.SIGTERM {
		ts.Fatalf("stopping %s: %v\n%s", args[0], err, c.output.String())
	}
	if strings.Contains(c.output.String(), "WARNING: DATA RACE") {
		ts.Fatalf("%s: a data race:\n%s", args[0], c.output.String())
	}
}
