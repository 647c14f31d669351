package escape

import (
	"net"

	"github.com/rogpeppe/go-internal/testscript"
)

// listen is a service of the machine that pods have nothing to do with.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listen PORT")
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort("", args[0]))
	ts.Check(err)
	ts.Defer(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
}
