package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/agent/api/kubeletapi/access"
	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/revoked"
	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/failover"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/liveness"
	"github.com/setpoint-io/setpoint/server/peers"
)

// TestARevokedServerIsLeftByAgents: of three servers one is revoked. What an agent has open there ends, nothing is opened again, and the
// server finds the doors of agents and of the other servers shut. How long each took is in the log.
func TestARevokedServerIsLeftByAgents(t *testing.T) {
	t.Run("the agent hears of it from another one", func(t *testing.T) { leaveRevoked(t, 0) })
	t.Run("the agent hears from the one that is revoked", func(t *testing.T) { leaveRevoked(t, 2) })
}

// leaveRevoked revokes the third server, while the agent follows the list at the one with the number.
func leaveRevoked(t *testing.T, from int) {
	cluster, addresses, servers, pool := startThree(t)
	register(t, servers[0], "n1")
	stolen := addresses[2]
	a := startRevocable(t, cluster, addresses, addresses[from], pool, servers[0].liveness.GossipAddresses)

	watch := a.watch(t, stolen)
	a.holdSession(t, stolen)
	soon(t, func() string { return unless(servers[2].holdsSessions(), "there is no session yet") })
	soon(t, func() string { return unless(a.gossips(stolen.Name), "gossip does not know the server yet") })
	port := a.kubeletPort(t)
	soon(t, func() string {
		return unless(a.asServer(t, stolen, port) == http.StatusOK, "the node does not answer the server yet")
	})
	shut := map[string]func() bool{
		"a watch of an agent at the server":  watch,
		"an agent's session with the server": func() bool { return !servers[2].holdsSessions() },
		"a new connection of an agent":       func() bool { return a.refuses(t, stolen) },
		"port 10250 of an agent":             func() bool { return a.asServer(t, stolen, port) == http.StatusUnauthorized },
		"the server in an agent's gossip":    func() bool { return !a.gossips(stolen.Name) },
		"Raft at another server":             func() bool { return a.raftRefused(t, stolen, addresses[0]) },
		"the API of another server": func() bool {
			return a.asServer(t, stolen, "https://"+addresses[0].Endpoint+"/version") == http.StatusUnauthorized
		},
		"the server in the gossip of the other": func() bool { return !isAlive(servers[0], stolen.Name) },
	}
	took := revokeAndTime(t, clientAt(t, cluster, addresses[0]), stolen.Name, shut)
	for _, door := range slices.Sorted(maps.Keys(took)) {
		t.Logf("%-45s shut %6.3f s after the write was answered", door, took[door].Seconds())
	}
	if a.list.Judge.Revoked(revocation.Identity{User: trust.ServerUser(stolen.Name)}) == nil {
		t.Error("the agent has not heard")
	}
	soon(t, func() string { // the list counts before it is kept
		again := revoked.Open(a.dir, writePrivate, slog.New(slog.DiscardHandler))
		kept := again.Judge.Revoked(revocation.Identity{User: trust.ServerUser(stolen.Name)}) != nil
		return unless(kept, "after a restart the agent would begin at the server again")
	})
}

// revocable is what an agent has that speaks to servers, without its pods.
type revocable struct {
	cluster *trust.Cluster
	live    *trust.Live
	dir     string
	list    *revoked.List
	pool    *gossip.Pool
	clients sync.Map // of asServer, by URL
}

func writePrivate(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

// startRevocable follows the list by all servers, as an agent does, from one on.
func startRevocable(
	t *testing.T, cluster *trust.Cluster, addresses []trust.Server, from trust.Server, membership *gossip.Membership, seeds func() []string,
) *revocable {
	t.Helper()
	node, err := cluster.CA.IssueNode("n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a := &revocable{cluster: cluster, dir: t.TempDir()}
	if a.live, err = trust.NewLive(node); err != nil {
		t.Fatal(err)
	}
	a.list = revoked.Open(a.dir, writePrivate, slog.New(slog.DiscardHandler))
	begin := []string{from.Endpoint}
	var known atomic.Pointer[[]string]
	known.Store(&begin)
	following, err := failover.New(a.live, func() []string { return *known.Load() }, a.list.Judge)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://any", QPS: -1, Transport: following})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, func() string {
		_, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return unless(err == nil, fmt.Sprint(err))
	})
	all := endpoints(addresses)
	known.Store(&all) // it stays where it is as long as it is answered there
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.list.Follow(ctx, client) })
	keys := cluster.GossipKeys.Told()
	a.pool = membership.Join(gossip.Config{
		Name: "n1", Role: gossip.RoleNode, Keys: keys.Keys, Label: keys.Label, Logger: slog.New(slog.DiscardHandler),
		Revoked: gossip.RevokedBy(a.list.Judge), Seeds: seeds,
	})
	running.Go(func() { _ = a.pool.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait(); _ = a.pool.Leave(time.Second) })
	return a
}

// transport goes to one of these servers, as an agent's requests do.
func (a *revocable) transport(t *testing.T, servers ...trust.Server) http.RoundTripper {
	t.Helper()
	at := endpoints(servers)
	transport, err := failover.New(a.live, func() []string { return at }, a.list.Judge)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// watch opens one, and returns whether it has ended.
func (a *revocable) watch(t *testing.T, at trust.Server) (ended func() bool) {
	t.Helper()
	client := &http.Client{Transport: a.transport(t, at)}
	var answer *http.Response
	soon(t, func() string {
		var err error
		if answer, err = client.Get("https://any/api/v1/nodes?watch=1&timeoutSeconds=3000"); err != nil {
			return err.Error()
		}
		if answer.StatusCode != http.StatusOK {
			_ = answer.Body.Close()
			return answer.Status
		}
		return ""
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, answer.Body)
	}()
	t.Cleanup(func() { _ = answer.Body.Close(); <-done })
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// refuses tells whether a new connection fails because the server was revoked, and not otherwise.
func (a *revocable) refuses(t *testing.T, server trust.Server) bool {
	t.Helper()
	answer, err := (&http.Client{Transport: a.transport(t, server)}).Get("https://any/version")
	if err == nil {
		_ = answer.Body.Close()
	}
	var refused *revocation.Error
	return errors.As(err, &refused)
}

// holdSession keeps one with the server alone.
func (a *revocable) holdSession(t *testing.T, with trust.Server) {
	t.Helper()
	config, err := a.live.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport := trust.NewTransport(a.live, config, failover.Guarded(a.list.Judge, failover.SessionTransport))
	client := &session.Client{
		HTTP: &http.Client{Transport: transport}, Servers: func() []string { return []string{"https://" + with.Endpoint} },
		Logger: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done; transport.CloseIdleConnections() })
}

func (a *revocable) gossips(server string) bool {
	return slices.ContainsFunc(a.pool.Members(), func(m gossip.Member) bool {
		return m.Name == server && m.Role == gossip.RoleServer && m.State == gossip.Alive
	})
}

// kubeletPort is the door of port 10250, at a URL.
func (a *revocable) kubeletPort(t *testing.T) string {
	t.Helper()
	nobody := func(string) bool { return false }
	guard := access.New(access.Config{
		Node: "n1", ServersOnly: nobody, NoTokens: true, Revoked: a.list.Judge, Logger: slog.New(slog.DiscardHandler),
	})
	server := httptest.NewUnstartedServer(guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(a.cluster.CA.CertPEM())
	server.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// asServer is how a request is answered that shows the certificate of a server; 0: not at all.
func (a *revocable) asServer(t *testing.T, server trust.Server, url string) int {
	t.Helper()
	client, known := a.clients.Load(url)
	if !known {
		client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, Certificates: []tls.Certificate{a.pairOf(t, server)},
		}}}
		a.clients.Store(url, client)
		t.Cleanup(client.(*http.Client).CloseIdleConnections)
	}
	answer, err := client.(*http.Client).Get(url)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func (a *revocable) pairOf(t *testing.T, server trust.Server) tls.Certificate {
	t.Helper()
	id, err := a.cluster.CA.IssueServer(server, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(id.CertPEM, id.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// raftRefused tells whether a connection of Raft with the certificate of a server is closed at once by another.
func (a *revocable) raftRefused(t *testing.T, server, by trust.Server) bool {
	t.Helper()
	conn, err := tls.Dial("tcp", by.Endpoint, &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{a.pairOf(t, server)}, NextProtos: []string{peers.RaftProtocol},
	})
	if err != nil {
		return true
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded) // it waits for what comes
}

// revokeAndTime revokes a server, and returns how long after the answer each door was shut.
func revokeAndTime(t *testing.T, client kubernetes.Interface, server string, shut map[string]func() bool) map[string]time.Duration {
	t.Helper()
	for door, is := range shut {
		if is() {
			t.Errorf("%s is shut before anybody is revoked", door)
		}
	}
	target, err := revocation.ParseTarget("server/" + server)
	if err != nil {
		t.Fatal(err)
	}
	entry := revocation.Entry{Target: target, At: time.Now()}
	soon(t, func() string { // the leader may not have made the namespace yet
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: revocation.ConfigMapName}, Data: map[string]string{entry.DataKey(): entry.Text()},
		}, metav1.CreateOptions{})
		return unless(err == nil, fmt.Sprint(err))
	})
	answered, took := time.Now(), map[string]time.Duration{}
	soon(t, func() string {
		var open []string
		for door, is := range shut {
			if _, done := took[door]; done {
				continue
			}
			if is() {
				took[door] = time.Since(answered)
			} else {
				open = append(open, door)
			}
		}
		return strings.Join(open, ", ")
	})
	return took
}

// isAlive tells whether a server is a member of the pool in the eyes of another.
func isAlive(by *Server, server string) bool {
	return slices.ContainsFunc(by.liveness.GossipMembers(), func(m liveness.GossipMember) bool {
		return m.Name == server && m.State == gossip.Alive.String()
	})
}

func endpoints(servers []trust.Server) (at []string) {
	for _, s := range servers {
		at = append(at, s.Endpoint)
	}
	return at
}
