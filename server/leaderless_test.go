package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

// links are the ways between servers: one that is cut swallows calls, and ends what went over it.
type links struct {
	mu    sync.Mutex
	cut   map[[2]string]bool // of a server's name and another's address
	conns map[[2]string][]net.Conn
}

// dial is how a server reaches the others.
func (l *links) dial(from string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if l.isCut(from, address) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.conns[[2]string{from, address}] = append(l.conns[[2]string{from, address}], conn)
		}
		return conn, err
	}
}

func (l *links) isCut(from, address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut[[2]string{from, address}]
}

// between cuts or mends the link of two servers.
func (l *links) between(a, b *Server, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, way := range [][2]string{{a.config.Name, b.identity.self.Endpoint}, {b.config.Name, a.identity.self.Endpoint}} {
		l.cut[way] = cut
		for _, conn := range l.conns[way] {
			_ = conn.Close()
		}
		delete(l.conns, way)
	}
}

// TestAgentsAndClientsLeaveAServerThatLosesItsLeader: one link is cut, between a follower and the leader, and all agents
// reach all servers. Before, the leader lost the follower's agents from its sight, and evicted their pods.
func TestAgentsAndClientsLeaveAServerThatLosesItsLeader(t *testing.T) {
	l := &links{cut: map[[2]string]bool{}, conns: map[[2]string][]net.Conn{}}
	cluster, addresses, servers, _ := startThree(t, func(c *Config) { c.Dial = l.dial(c.Name) })
	leader, follower := leaderAndFollower(t, servers)
	var nodes []string
	for follower.liveness.Held() == 0 { // agents choose by chance
		nodes = append(nodes, fmt.Sprintf("n%d", len(nodes)+1))
		register(t, leader, nodes[len(nodes)-1])
		defer startAgentLiveness(t, nodes[len(nodes)-1], cluster, addresses, nil)()
		soon(t, func() string { return unless(held(servers) == len(nodes), "not all agents have a session") })
	}
	client, err := kubernetes.NewForConfig(follower.RESTConfig(inprocess.Server))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	l.between(leader, follower, true)
	soon(t, func() string {
		for _, node := range nodes {
			if signal := leader.liveness.Node(node); signal.Session == nodelifecycle.SessionLost {
				t.Fatalf("after %v the leader has lost %s", time.Since(begun), node)
			}
		}
		return unless(follower.liveness.Held() == 0 && held(servers) == len(nodes), "agents are still with the server without a leader")
	})
	t.Logf("all %d agents were elsewhere after %v", len(nodes), time.Since(begun))
	last := lastOf(changes)
	if last.Type != watch.Error || !apierrors.HasStatusCause(apierrors.FromObject(last.Object), storage.CauseNoLeader) {
		t.Errorf("the watch ends with %+v", last)
	}
	_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.HasStatusCause(err, storage.CauseNoLeader) {
		t.Errorf("a list: %v", err)
	}
	if err := follower.api.checkLog(t.Context()); !errors.Is(err, raftstore.ErrNoLeader) {
		t.Errorf("ready: %v", err)
	}
	l.between(leader, follower, false)
	soon(t, func() string {
		return unless(follower.api.checkLog(t.Context()) == nil, "the server is not ready though the link is there again")
	})
}

func leaderAndFollower(t *testing.T, servers []*Server) (leader, follower *Server) {
	t.Helper()
	soon(t, func() string {
		for i, s := range servers {
			if s.log.Leadership().Leader {
				leader, follower = s, servers[(i+1)%len(servers)]
			}
		}
		return unless(leader != nil, "no leader")
	})
	for _, s := range servers {
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return leader, follower
}

func held(servers []*Server) (sessions int) {
	for _, s := range servers {
		sessions += s.liveness.Held()
	}
	return sessions
}

func lastOf(w watch.Interface) (last watch.Event) {
	for event := range w.ResultChan() {
		last = event
	}
	return last
}

func unless(good bool, problem string) string {
	if good {
		return ""
	}
	return problem
}
