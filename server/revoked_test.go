package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/peers"
)

// revoke adds to the list, and waits until the server knows.
func (s *site) revoke(t *testing.T, targets ...string) {
	t.Helper()
	lists := s.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	list, err := lists.Get(t.Context(), revocation.ConfigMapName, metav1.GetOptions{})
	if missing := apierrors.IsNotFound(err); missing {
		list, err = lists.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: revocation.ConfigMapName}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if list.Data == nil {
		list.Data = map[string]string{}
	}
	for _, text := range targets {
		target, err := revocation.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		entry := revocation.Entry{Target: target, At: time.Now()}
		list.Data[entry.DataKey()] = entry.Text()
	}
	if _, err := lists.Update(t.Context(), list, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	last := revocation.Identity{}
	if kind, name, _ := strings.Cut(targets[len(targets)-1], "/"); kind == revocation.User {
		last.User = name
	} else if kind == revocation.Node {
		last.User = trust.NodeUser(name)
	} else {
		last.User = trust.ServerUser(name)
	}
	soon(t, func() string {
		if s.server.revoked.Revoked(last) == nil {
			return "the list is not known yet"
		}
		return ""
	})
}

// TestARevokedCallerFindsEachDoorShut: everywhere where others get an answer he is told that he was revoked, and nothing else.
func TestARevokedCallerFindsEachDoorShut(t *testing.T) {
	s := newSite(t)
	personas := s.personas(t)
	rows := strings.Split(strings.Trim(judged, "\n"), "\n")
	names := strings.Fields(rows[0])
	shut := map[string]int{ // and what he is answered
		"tina": http.StatusUnauthorized, "as-tina": http.StatusForbidden, "node": http.StatusUnauthorized, "as-node": http.StatusForbidden,
		"account": http.StatusUnauthorized,
	}
	s.revoke(t, "user/tina", "node/node-1", "user/system:serviceaccount:default:default")
	for _, row := range rows[1:] {
		fields := strings.Fields(row)
		for i, persona := range personas {
			want, isShut := shut[names[i]]
			r := ask(fields[0], fields[1], `{"kind":"Secret","namespace":"default","name":"of-nobody"}`)
			persona(r)
			w := httptest.NewRecorder()
			s.server.api.server.ServeHTTP(w, r.WithContext(t.Context()))
			told := strings.Contains(w.Body.String(), " was revoked on ")
			if told != isShut || isShut && w.Code != want {
				t.Errorf("%s %s as %s: %d %.200s", fields[0], fields[1], names[i], w.Code, w.Body.String())
			}
		}
	}
}

// dial is a connection to the server that shows a certificate.
func (s *site) dial(t *testing.T, id *trust.Identity, protocol string) *tls.Conn {
	t.Helper()
	pair, err := tls.X509KeyPair(id.CertPEM, id.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.cluster.CA.CertPEM())
	conn, err := tls.Dial("tcp", s.self.Endpoint, &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: s.self.Name, NextProtos: []string{protocol},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestWhatIsOpenEndsWithRevocation: a watch, a connection of Raft, and a session; and neither opens again.
func TestWhatIsOpenEndsWithRevocation(t *testing.T) {
	s := newSiteOf(t, Config{Logger: slog.New(slog.DiscardHandler), Gossip: &gossip.Membership{BindAddress: "127.0.0.1:0"}})
	now := time.Now()
	node, err := s.cluster.CA.IssueNode("n1", now)
	if err != nil {
		t.Fatal(err)
	}
	server, err := s.cluster.CA.IssueServer(trust.Server{Name: "server-2", Endpoint: "127.0.0.1:1"}, now)
	if err != nil {
		t.Fatal(err)
	}
	register(t, s.server, "n1")
	watch := s.dial(t, node, "http/1.1")
	if _, err := watch.Write([]byte("GET /api/v1/nodes?watch=1&timeoutSeconds=3000 HTTP/1.1\r\nHost: server-1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(watch), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	raft := s.dial(t, server, peers.RaftProtocol)
	live, err := trust.NewLive(node)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	session := make(chan error, 1)
	go func() {
		session <- host.RunLiveness(ctx, host.LivenessConfig{
			NodeName: "n1", Servers: []string{s.self.Endpoint}, Identity: live, GossipKeys: s.cluster.GossipKeys, Logger: slog.New(slog.DiscardHandler),
			Gossip: &gossip.Membership{BindAddress: "127.0.0.1:0"},
		})
	}()
	t.Cleanup(func() { stop(); <-session })
	eventually(t, s.server, nodelifecycle.SessionAlive, nodelifecycle.GossipAlive)

	s.revoke(t, "node/n1", "server/server-2")
	if _, err := bufio.NewReader(answer.Body).ReadString(0); err == nil {
		t.Error("the watch goes on")
	}
	if n, err := raft.Read(make([]byte, 1)); err == nil {
		t.Errorf("Raft goes on: %d", n)
	}
	eventually(t, s.server, nodelifecycle.SessionLost, nodelifecycle.GossipNotMember)
	again := s.dial(t, server, peers.RaftProtocol)
	if n, err := again.Read(make([]byte, 1)); err == nil {
		t.Errorf("Raft begins anew: %d", n)
	}
}

// TestServersThatMayBeRevoked: never the one that is asked, and never so many that the others cannot write.
func TestServersThatMayBeRevoked(t *testing.T) {
	voter := func(name string, reachable bool) raftstore.Member {
		return raftstore.Member{Name: name, Voter: true, Reachable: reachable}
	}
	all := []raftstore.Member{voter("s1", true), voter("s2", true), voter("s3", true), {Name: "learner", Reachable: true}}
	for name, c := range map[string]struct {
		server  string
		members []raftstore.Member
		revoked string
		refused bool
	}{
		"one of three":              {"s2", all, "", false},
		"a second of three":         {"s2", all, "s3", true},
		"while another is down":     {"s2", []raftstore.Member{voter("s1", true), voter("s2", true), voter("s3", false)}, "", true},
		"the one that is down":      {"s3", []raftstore.Member{voter("s1", true), voter("s2", true), voter("s3", false)}, "", false},
		"one of two":                {"s2", all[:2], "", true},
		"who has no vote":           {"learner", all, "", false},
		"who is no member any more": {"s9", all[:1], "", false},
	} {
		err := judgeRevokedServer(c.server, c.members, func(name string) bool { return name == c.revoked || name == c.server })
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newSite(t)
	if err := s.server.api.judgeRevokedServer(t.Context(), s.self.Name, func(string) bool { return false }); err == nil {
		t.Error("a server shuts itself out")
	}
}
