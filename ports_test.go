package setpoint_test

import (
	"bytes"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/internal/freeport"
)

// TestPortsAreKept from start to start, for whoever has a copy of a kubeconfig.
func TestPortsAreKept(t *testing.T) {
	dir := t.TempDir()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(address, ":")
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	first := startedAt(t, setpoint.Config{DataDir: dir, Port: number})
	if again := startedAt(t, setpoint.Config{DataDir: dir}); again != first {
		t.Errorf("the second start listens at %s, the first did at %s", again, first)
	}
	taken, err := net.Listen("tcp", first)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var log lockedBuffer
	third := startedAt(t, setpoint.Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if third == first {
		t.Error("the third start listens where another program does")
	}
	if !strings.Contains(log.String(), "takes another port") || !strings.Contains(log.String(), first) {
		t.Errorf("it does not say so:\n%s", log.String())
	}
}

// lockedBuffer is a log that raft's connections may still write to when a cluster has stopped.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// startedAt is where a cluster listened that has ended.
func startedAt(t *testing.T, config setpoint.Config) string {
	t.Helper()
	cluster, access := started(t, config)
	server, err := url.Parse(access.Host)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	return server.Host
}
