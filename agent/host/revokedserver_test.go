package host

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/node/knownservers"
	"github.com/setpoint-io/setpoint/internal/clusterlife"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestARevokedServerIsLeft: an agent's session and its requests end when the server is revoked, and no other connection is made.
func TestARevokedServerIsLeft(t *testing.T) {
	said := make(lines, 1000)
	logger := slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	asked := make(chan *http.Request, 100)
	server, node := aServer(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- r
		<-r.Context().Done()
	})
	judge := &revocation.Judge{}
	known := knownservers.Fixed([]string{server}, logger)
	life, err := clusterlife.Open(t.TempDir(), func(string, []byte) error { return nil }, logger)
	if err != nil {
		t.Fatal(err)
	}
	client, _, err := failoverClients(node, known, life, judge)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	liveness, request := make(chan error, 1), make(chan error, 1)
	go func() {
		liveness <- RunLiveness(ctx, LivenessConfig{NodeName: "n1", Servers: []string{server}, Identity: node, revoked: judge, Logger: logger})
	}()
	session := <-asked
	get := func() error {
		_, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		return err
	}
	go func() { request <- get() }()
	ofAPI := <-asked
	if strings.HasPrefix(session.URL.Path, "/api") || !strings.HasPrefix(ofAPI.URL.Path, "/api") {
		t.Fatalf("%s and %s were asked", session.URL.Path, ofAPI.URL.Path)
	}
	entry := revocation.Entry{Target: revocation.Target{Kind: revocation.Server, Name: "s"}, At: time.Now()}
	judge.UseData(map[string]string{entry.DataKey(): entry.Text()}, logger)
	<-session.Context().Done()
	<-ofAPI.Context().Done()
	if err := <-request; err == nil {
		t.Error("the request was answered")
	}
	var refused *revocation.Error
	if err := get(); !errors.As(err, &refused) {
		t.Errorf("the next request: %v", err)
	}
	for line := range said { // the next try of a session
		if strings.Contains(line, "session ended") && strings.Contains(line, "was revoked on") {
			break
		}
	}
	stop()
	if err := <-liveness; err != nil {
		t.Error(err)
	}
	if n := len(asked); n > 0 {
		t.Errorf("%d further requests", n)
	}
}

// lines are what is logged; what nobody has read of too much is dropped.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// aServer is one of a cluster, and the identity of a node there.
func aServer(t *testing.T, handler http.HandlerFunc) (endpoint string, node *trust.Live) {
	t.Helper()
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own, err := ca.IssueServer(trust.Server{Name: "s", Endpoint: "127.0.0.1:1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(own.CertPEM, own.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	id, err := ca.IssueNode("n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if node, err = trust.NewLive(id); err != nil {
		t.Fatal(err)
	}
	return server.Listener.Addr().String(), node
}
