package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// datagramBytesMax is more than servers and agents tell at once.
const datagramBytesMax = 4096

// managerKey is where a script has the socket at which it plays the service manager, as a *managerSocket.
type managerKey struct{}

type managerSocket struct{ *net.UnixConn }

// manager plays systemd for what a script starts from now on, with a watchdog of a second.
func manager(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: service-manager")
	}
	dir, err := os.MkdirTemp("", "") // the path of a socket is short
	ts.Check(err)
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	ts.Check(err)
	ts.Defer(func() { _ = errors.Join(conn.Close(), os.RemoveAll(dir)) })
	ts.Setenv("NOTIFY_SOCKET", path)
	ts.Setenv("WATCHDOG_USEC", "1000000")
	ts.Value(managerKey{}).(*managerSocket).UnixConn = conn
}

// told reads what the service manager is told until it is what is wanted. Nothing before may begin as a second argument says.
func told(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: told REGEXP [PREFIX]")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	conn := ts.Value(managerKey{}).(*managerSocket)
	ts.Check(conn.SetReadDeadline(time.Now().Add(readyTimeout)))
	text := make([]byte, datagramBytesMax)
	for {
		n, err := conn.Read(text)
		if err != nil {
			ts.Fatalf("nobody told %s: %v", args[0], err)
		}
		ts.Logf("told %q", text[:n])
		if want.Match(text[:n]) {
			return
		}
		if len(args) > 1 && strings.HasPrefix(string(text[:n]), args[1]) {
			ts.Fatalf("told %q before %s", text[:n], args[0])
		}
	}
}
