package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/internal/freeport"
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
	address, err := freeport.Address()
	ts.Check(err)
	return address
}

// startServer starts a server of $SERVERS, with its data in a folder of its name.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: start-server NAME FLAGS...")
	}
	runServer(ts, args[0], append([]string{"--initial-servers", ts.Getenv("SERVERS"), "--trust-dir", "trust"}, args[1:]...)...)
}

// startAlone starts a server that begins a cluster by itself at $ADDR1.
func startAlone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: start-alone NAME")
	}
	runServer(ts, args[0], "--advertise-address", ts.Getenv("ADDR1"))
}

// startJoining starts a server that joins the one at $ADDR1, with a token and nothing else.
func startJoining(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start-joining NAME ADDRESS FLAGS...")
	}
	runServer(ts, args[0], append([]string{"--join", ts.Getenv("ADDR1"), "--token-file", "server.token", "--advertise-address", args[1]}, args[2:]...)...)
}

// runServer starts a server with its data in a folder of its name.
func runServer(ts *testscript.TestScript, name string, flags ...string) {
	running := ts.Value(serversKey{}).(map[string]*cluster)
	c := &cluster{}
	ts.Check(c.start(ts, append([]string{"server", "--name", name, "--data-dir", name, "--gossip-address="}, flags...)))
	running[name] = c
	ts.Defer(func() {
		if c.cmd != nil { // the script did not come to its end
			_ = c.end(syscall.SIGKILL)
			ts.Logf("%s said:\n%s", name, c.output.String())
		}
	})
}

// said waits for a line in what a server logs.
func said(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: said NAME REGEXP")
	}
	c := ts.Value(serversKey{}).(map[string]*cluster)[args[0]]
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	deadline, tick := time.After(readyTimeout), time.NewTicker(pollInterval)
	defer tick.Stop()
	for !want.MatchString(c.output.String()) {
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s did not say %s:\n%s", args[0], args[1], c.output.String())
		}
	}
}

// giveUpTimeout is below the 30 s that a server waits before it says that it has no leader: what fails must not wait
// for that.
const giveUpTimeout = 15 * time.Second

// givesUp waits until a server has ended by itself.
func givesUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gives-up NAME")
	}
	c := ts.Value(serversKey{}).(map[string]*cluster)[args[0]]
	select {
	case <-c.ended:
	case <-time.After(giveUpTimeout):
		ts.Fatalf("%s has not ended:\n%s", args[0], c.output.String())
	}
	if c.err == nil {
		ts.Fatalf("%s ended well:\n%s", args[0], c.output.String())
	}
	c.cmd = nil
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
