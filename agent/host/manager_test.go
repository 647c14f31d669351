package host

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/internal/sdnotify"
)

// TestAnAgentTellsItsServiceManager: that it runs, without any server, and then that pods do.
func TestAnAgentTellsItsServiceManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	o := &Options{Name: "n"}
	started := o.tellManager(sdnotify.Open(slog.New(slog.DiscardHandler)))
	text := make([]byte, 100)
	read := func() string {
		n, err := conn.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	if got := read(); got != "READY=1\nSTATUS=node n waits for a server of its cluster" {
		t.Errorf("at first it tells %q", got)
	}
	started(func(context.Context) error { return nil })
	if got := read(); got != "STATUS=node n runs pods" {
		t.Errorf("then it tells %q", got)
	}
}
