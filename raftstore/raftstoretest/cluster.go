package raftstoretest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// syncDelay is how long a write takes to be durable: longer than a message takes,
// so that what must wait for the disk is seen not to.
const syncDelay = 2 * time.Millisecond

// electionLimit is how long Leader waits.
const electionLimit = 30 * time.Second

// Cluster is several real replicas with disks in memory and a network that can be
// cut. Use it inside a testing/synctest bubble and Close it there.
type Cluster struct {
	t       testing.TB
	network *network
	// mu guards members against those who dial: only the test adds to them.
	mu      sync.Mutex
	members []*member
	// names tells who is at a host: members are added while others dial.
	names sync.Map
	// founders is how many of the members found the cluster.
	founders  int
	configure func(*raftstore.Config)
}

// member is one server, which may be down. host is its place in the network and
// its address.
type member struct {
	name, host string
	disk       *replica.Memory
	// trust is its trust folder, which outlives the disk.
	trust TrustFolder

	mu    sync.Mutex
	store *raftstore.Store
	web   *http.Server
	// transport reaches the other members' handlers.
	transport *http.Transport
	fatal     error
}

// StartCluster starts n servers named server-1 and so on. configure, if not nil,
// changes each server's Config before each start.
func StartCluster(t testing.TB, n int, configure func(*raftstore.Config)) *Cluster {
	c := NewCluster(t, n, configure)
	for i := range n {
		c.start(i)
	}
	return c
}

// NewCluster is StartCluster without the start: Restart does that, one by one.
func NewCluster(t testing.TB, n int, configure func(*raftstore.Config)) *Cluster {
	c := &Cluster{t: t, network: newNetwork(), founders: n, configure: configure}
	for i := range n {
		c.add(fmt.Sprintf("server-%d", i+1), fmt.Sprintf("server-%d", i+1))
	}
	return c
}

func (c *Cluster) add(name, host string) {
	disk := replica.NewMemory()
	disk.SyncDelay = syncDelay
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, &member{name: name, host: host, disk: disk})
	c.names.Store(host, name)
}

// config is what a server starts with.
func (c *Cluster) config(m *member) raftstore.Config {
	client := c.httpClient(m)
	cfg := raftstore.Config{
		Name: m.name, AdvertiseAddress: m.host, Disk: replica.MemoryDisk{Memory: m.disk}, ClusterID: "test", Founded: &m.trust,
		Logger: slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
		Dial: func(ctx context.Context, address, to string) (net.Conn, error) {
			if c.nameAt(address) != to {
				return nil, fmt.Errorf("%s is not at %s", to, address)
			}
			return c.network.dial(ctx, m.host, address, "raft")
		},
		HTTPClient:    func(_, address string) (*http.Client, string) { return client, "http://" + address },
		AuthorizePeer: func(*http.Request) error { return nil },
		Fatal:         m.failed,
	}
	for _, founder := range c.members[:c.founders] {
		server := raftstore.Server{ID: founder.name, Address: founder.host}
		if founder.name == m.name {
			server.Address = m.host
		}
		cfg.InitialServers = append(cfg.InitialServers, server)
	}
	if c.configure != nil {
		c.configure(&cfg)
	}
	return cfg
}

// nameAt is what the certificate of the server at an address would say.
func (c *Cluster) nameAt(address string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _ := c.names.Load(address)
	text, _ := name.(string)
	return text
}

func (c *Cluster) start(i int) {
	if err := c.Try(i); err != nil {
		c.t.Fatalf("starting %s: %v", c.members[i].name, err)
	}
}

// Try starts a server that is down, or returns why it does not start.
func (c *Cluster) Try(i int) error {
	m := c.members[i]
	cfg := c.config(m)
	m.failed(nil)
	store, err := raftstore.Open(c.t.Context(), cfg)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.store = store
	m.mu.Unlock()
	c.serve(m)
	return nil
}

// httpClient returns a client whose connections come from the member.
func (c *Cluster) httpClient(m *member) *http.Client {
	m.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			to, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return c.network.dial(ctx, m.host, to, "http")
		},
	}
	return &http.Client{Transport: m.transport}
}

func (c *Cluster) serve(m *member) {
	mux := http.NewServeMux()
	mux.Handle(m.store.Handler())
	listener := newPipeListener()
	m.web = &http.Server{Handler: mux}
	go m.web.Serve(listener)
	c.network.listen(m.host, "http", listener.serve)
	c.network.listen(m.host, "raft", m.store.HandleRaftConn)
}

func (m *member) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fatal = err
}

// Fatal returns the error by which a server stopped itself, or nil. One that has been crashed did not stop itself, though its
// storage may have answered a last write.
func (c *Cluster) Fatal(i int) error {
	c.members[i].mu.Lock()
	defer c.members[i].mu.Unlock()
	if err := c.members[i].fatal; !errors.Is(err, replica.ErrCrashed) {
		return err
	}
	return nil
}

// Store returns a server's store, nil while it is down.
func (c *Cluster) Store(i int) *raftstore.Store {
	c.members[i].mu.Lock()
	defer c.members[i].mu.Unlock()
	return c.members[i].store
}

// Name returns a server's name.
func (c *Cluster) Name(i int) string { return c.members[i].name }

// Stall makes a server's disk hang until Resume.
func (c *Cluster) Stall(i int) { c.members[i].disk.Stall() }

// SlowDown sets how long each write of a server's disk takes from the next on; 0 is as long as at the start.
func (c *Cluster) SlowDown(i int, delay time.Duration) {
	c.members[i].disk.SetSyncDelay(cmp.Or(delay, syncDelay))
}

// Resume ends a Stall.
func (c *Cluster) Resume(i int) { c.members[i].disk.Resume() }

// SetSpace says how large a server's disk is and how much of it is free.
func (c *Cluster) SetSpace(i int, s replica.Space) { c.members[i].disk.SetSpace(s) }

// Size returns the number of servers, up or down.
func (c *Cluster) Size() int { return len(c.members) }

// Leader waits until some server of those given, or of all, leads, and returns it.
// Of two that claim to, it is the one in the later term.
func (c *Cluster) Leader(among ...int) int {
	if len(among) == 0 {
		for i := range c.members {
			among = append(among, i)
		}
	}
	for deadline := time.Now().Add(electionLimit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		leader, term := -1, uint64(0)
		for _, i := range among {
			if s := c.Store(i); s != nil && s.Leadership().Leader && s.Leadership().Term > term {
				leader, term = i, s.Leadership().Term
			}
		}
		if leader >= 0 {
			return leader
		}
	}
	c.t.Fatalf("no leader among %v after %v", among, electionLimit)
	return -1
}

// Crash cuts the power of a server: what its disk had not made durable is lost.
func (c *Cluster) Crash(i int) {
	m := c.members[i]
	m.disk.Crash()
	c.network.unplug(m.host)
	c.stop(m, true)
}

// Stop shuts a server down in order.
func (c *Cluster) Stop(i int) { c.stop(c.members[i], false) }

func (c *Cluster) stop(m *member, crashed bool) {
	m.mu.Lock()
	store := m.store
	m.store = nil
	m.mu.Unlock()
	if store == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if crashed {
		cancel()
	}
	if err := store.Shutdown(ctx); err != nil && !crashed {
		c.t.Errorf("stopping %s: %v", m.name, err)
	}
	c.network.unplug(m.host)
	m.web.Close()
	m.transport.CloseIdleConnections()
}

// Restart starts a server that is down, with its disk.
func (c *Cluster) Restart(i int) { c.start(i) }

// Isolate cuts a server off from all others, in both directions.
func (c *Cluster) Isolate(i int) {
	for j := range c.members {
		if j != i {
			c.Cut(i, j)
			c.Cut(j, i)
		}
	}
}

// Cut swallows what one server sends to another.
func (c *Cluster) Cut(from, to int) {
	c.network.setCut(link{c.members[from].host, c.members[to].host}, true)
}

// Mend ends Cut in both directions.
func (c *Cluster) Mend(a, b int) {
	c.network.setCut(link{c.members[a].host, c.members[b].host}, false)
	c.network.setCut(link{c.members[b].host, c.members[a].host}, false)
}

// Refuse makes a server refuse connections from another, and ends those between them.
func (c *Cluster) Refuse(from, to int) {
	c.network.refuse(link{c.members[from].host, c.members[to].host})
}

// Allow ends Refuse.
func (c *Cluster) Allow(from, to int) {
	c.network.allow(link{c.members[from].host, c.members[to].host})
}

// Hold keeps back what one server sends to another from now on; Release delivers it.
func (c *Cluster) Hold(from, to int) {
	c.network.hold(link{c.members[from].host, c.members[to].host})
}

// Release delivers what Hold kept back.
func (c *Cluster) Release(from, to int) {
	c.network.release(link{c.members[from].host, c.members[to].host})
}

// Written is how often any server has written to a connection: requests, answers and what HTTP/2 says beside them.
func (c *Cluster) Written() int64 { return c.network.written.Load() }

// Heal mends all links and delivers what they hold.
func (c *Cluster) Heal() {
	for _, a := range c.members {
		for _, b := range c.members {
			c.network.release(link{a.host, b.host})
			c.network.setCut(link{a.host, b.host}, false)
		}
	}
}

// Join starts a server that is no founder and returns its number. It waits to be
// added by AddMember.
func (c *Cluster) Join(name string) int { return c.JoinAt(name, name) }

// JoinAt starts a server at an address of its own; its name may be that of another.
func (c *Cluster) JoinAt(name, host string) int {
	c.add(name, host)
	c.start(len(c.members) - 1)
	return len(c.members) - 1
}

// Wipe empties the disk of a server that is down.
func (c *Cluster) Wipe(i int) { c.members[i].disk.Wipe() }

// CopyDisk returns what is durable on a server's disk.
func (c *Cluster) CopyDisk(i int) *replica.Memory { return c.members[i].disk.Copy() }

// PutBack makes the disk of a server that is down what it was at CopyDisk.
func (c *Cluster) PutBack(i int, earlier *replica.Memory) { c.members[i].disk.PutBack(earlier) }

// Restore restores an archive on a server that is down and has an empty disk, for all
// founders.
func (c *Cluster) Restore(i int, archive []byte) (raftstore.Restored, error) {
	return raftstore.Restore(c.t.Context(), bytes.NewReader(archive), raftstore.RestoreConfig{
		Disk: c.Disk(i), Name: c.members[i].name, Servers: c.config(c.members[i]).InitialServers, ClusterID: "test", Time: time.Now(),
		Logger: slog.New(slog.DiscardHandler),
	})
}

// Disk is a server's disk.
func (c *Cluster) Disk(i int) replica.Disk { return replica.MemoryDisk{Memory: c.members[i].disk} }

// Corrupt changes one bit in the log of a server that is down.
func (c *Cluster) Corrupt(i int) {
	if !c.members[i].disk.FlipBit() {
		c.t.Fatalf("%s has no log to damage", c.members[i].name)
	}
}

// Alter gives a server that is down another value under the key than the others have.
func (c *Cluster) Alter(i int, key string) {
	if !c.members[i].disk.Alter(key) {
		c.t.Fatalf("%s has no entry of %s", c.members[i].name, key)
	}
}

// Move gives a server that is down another address.
func (c *Cluster) Move(i int, host string) {
	c.members[i].host = host
	c.names.Store(host, c.members[i].name)
}

// StateHash returns the hash of a server's state.
func (c *Cluster) StateHash(i int) [command.HashBytes]byte {
	_, hash := c.Store(i).StateHash()
	return hash
}

// Forgive forgets that a server stopped itself, for a test that made it.
func (c *Cluster) Forgive(i int) { c.members[i].failed(nil) }

// Close stops all servers and fails the test if one stopped itself for another
// reason than a crash.
func (c *Cluster) Close() {
	c.Heal()
	for i, m := range c.members {
		if err := c.Fatal(i); err != nil {
			c.t.Errorf("%s stopped itself: %v", m.name, err)
		}
		c.stop(m, true)
	}
}
