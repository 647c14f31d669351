package raftstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/freeport"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
)

// socketCluster is stores over loopback sockets, with files. Production has raft
// and HTTP behind one listener, here each has its own.
type socketCluster struct {
	stores  []*raftstore.Store
	servers []raftstore.Server
	dirs    []string
	client  *http.Client
	// web is the address of each server's HTTP.
	web     map[string]string
	closers map[int]func()
	// fatal is told what a server stopped for.
	fatal func(i int, err error)
}

func startOnSockets(t testing.TB, n int) *socketCluster {
	t.Helper()
	var dirs []string
	for range n {
		dirs = append(dirs, t.TempDir())
	}
	return startOnSocketsIn(t, dirs)
}

// startOnSocketsIn starts a server on each of the directories.
func startOnSocketsIn(t testing.TB, dirs []string) *socketCluster {
	t.Helper()
	n := len(dirs)
	c := &socketCluster{
		stores: make([]*raftstore.Store, n), client: &http.Client{Transport: &http.Transport{}}, web: map[string]string{},
		closers: map[int]func(){},
	}
	for i := range n {
		server := raftstore.Server{ID: fmt.Sprintf("server-%d", i+1), Address: freeAddress(t)}
		c.web[server.ID] = freeAddress(t)
		c.servers, c.dirs = append(c.servers, server), append(c.dirs, dirs[i])
	}
	c.fatal = func(i int, err error) { t.Errorf("%s: %v", c.servers[i].ID, err) }
	for i := range n {
		c.open(t, i)
	}
	t.Cleanup(func() { c.close(t) })
	return c
}

// open starts one server on its files and its addresses.
func (c *socketCluster) open(t testing.TB, i int) {
	t.Helper()
	server := c.servers[i]
	raft, web := listen(t, server.Address), listen(t, c.web[server.ID])
	store, err := raftstore.Open(t.Context(), raftstore.Config{
		Name: server.ID, AdvertiseAddress: server.Address, DataDir: c.dirs[i], InitialServers: c.servers,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Dial: func(ctx context.Context, address, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
		HTTPClient:    func(id, _ string) (*http.Client, string) { return c.client, "http://" + c.web[id] },
		AuthorizePeer: func(*http.Request) error { return nil },
		Fatal:         func(err error) { c.fatal(i, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.stores[i] = store
	mux := http.NewServeMux()
	mux.Handle(store.Handler())
	site := &http.Server{Handler: mux}
	go site.Serve(web)
	go acceptRaft(raft, store)
	c.closers[i] = func() { site.Close(); raft.Close() }
}

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acceptRaft(l net.Listener, s *raftstore.Store) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go s.HandleRaftConn(conn)
	}
}

func (c *socketCluster) close(t testing.TB) {
	var stopping sync.WaitGroup
	for _, s := range c.stores {
		stopping.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Errorf("shutdown: %v", err)
			}
		})
	}
	stopping.Wait()
	for _, f := range c.closers {
		f()
	}
	clear(c.closers)
}

// stop ends one server, whose disk may be dead.
func (c *socketCluster) stop(t testing.TB, i int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.stores[i].Shutdown(ctx); err != nil {
		t.Logf("shutdown: %v", err)
	}
	c.closers[i]()
	c.client.CloseIdleConnections()
}

// leader waits for one among the stores that run.
func (c *socketCluster) leader(t testing.TB) *raftstore.Store {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, s := range c.stores {
			if s.Leadership().Leader {
				return s
			}
		}
	}
	t.Fatal("no leader")
	return nil
}

func TestOverSockets(t *testing.T) {
	c := startOnSockets(t, 3)
	leader := c.leader(t)
	for i, s := range c.stores {
		mustPut(t, s, fmt.Sprintf("/k/%d", i), "v")
	}
	for i, s := range c.stores {
		if got := mustRead(t, s, fmt.Sprintf("/k/%d", (i+1)%3)); got != "v" {
			t.Errorf("server %d reads %q", i, got)
		}
		address := s.Leadership().LeaderAddress
		if want := c.address(leader); address != want {
			t.Errorf("server %d knows the leader at %q, want %q", i, address, want)
		}
	}
	if err := leader.TransferLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustPut(t, leader, "/after", "v")
	status := c.leader(t).Status()
	if len(status.Servers) != 3 || status.Revision == 0 || status.LogBytes == 0 || status.SyncP99 == 0 {
		t.Errorf("status %+v", status)
	}
}

func (c *socketCluster) address(s *raftstore.Store) string {
	for i := range c.stores {
		if c.stores[i] == s {
			return c.servers[i].Address
		}
	}
	return ""
}

func TestLoneServerOnASocket(t *testing.T) {
	c := startOnSockets(t, 1)
	mustPut(t, c.stores[0], "/k", "v")
	if got := mustRead(t, c.stores[0], "/k"); got != "v" {
		t.Errorf("read %q", got)
	}
}

// BenchmarkPropose measures committed writes of 1 KiB on three replicas that share
// this machine's disk, through the leader and through a follower.
func BenchmarkPropose(b *testing.B) {
	for _, through := range []string{"leader", "follower"} {
		for _, writers := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%s/writers=%d", through, writers), func(b *testing.B) {
				c := startOnSockets(b, 3)
				store := c.leader(b)
				if through == "follower" {
					store = c.follower(b)
				}
				value := make([]byte, 1024)
				value[0] = command.EncodingJSON
				b.ResetTimer()
				var writing sync.WaitGroup
				for w := range writers {
					writing.Go(func() {
						for i := w; i < b.N; i += writers {
							key := fmt.Sprintf("/bench/%d", i%10_000)
							_, err := store.Propose(b.Context(), command.Command{Ops: []command.Op{{Kind: command.Put, Key: key, Value: value}}})
							if err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				writing.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	}
}

func (c *socketCluster) follower(t testing.TB) *raftstore.Store {
	t.Helper()
	leader := c.leader(t)
	for _, s := range c.stores {
		if s != leader {
			return s
		}
	}
	return nil
}
