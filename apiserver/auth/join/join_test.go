package join_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth/join"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// site is one cluster with one server on loopback.
type site struct {
	cluster *pki.Cluster
	address string
	log     *bytes.Buffer
	// clock is what the server says the time is.
	clock time.Time
}

// newSite makes a cluster whose certificates were issued at a time, and serves joins.
func newSite(t *testing.T, issued time.Time) *site {
	t.Helper()
	s := &site{log: &bytes.Buffer{}, clock: time.Now()}
	servers := []pki.Server{{Name: "server-1", Endpoint: "192.0.2.1:6443"}}
	cluster, err := pki.InitCluster(t.TempDir(), servers, issued)
	if err != nil {
		t.Fatal(err)
	}
	id, err := cluster.LoadServer("server-1")
	if err != nil {
		t.Fatal(err)
	}
	config, err := id.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	s.cluster = cluster
	mux := http.NewServeMux()
	mux.Handle(join.Path, join.NewHandler(join.HandlerConfig{
		Signer: cluster.CA, CAPEM: cluster.CA.CertPEM(), Tokens: []pki.Token{cluster.NodeToken},
		GossipKey: cluster.GossipKey, Servers: servers, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}))
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", s.clock.UTC().Format(http.TimeFormat))
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	s.address = server.Listener.Addr().String()
	return s
}

func (s *site) config(node string) join.Config {
	return join.Config{Servers: []string{s.address}, Token: s.cluster.NodeToken.Text(), NodeName: node, Addresses: []string{"192.0.2.9", "192.0.2.1"}}
}

func TestJoin(t *testing.T) {
	s, dir := newSite(t, time.Now()), t.TempDir()
	node, err := join.LoadOrJoin(t.Context(), dir, s.config("a"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(node.GossipKey, s.cluster.GossipKey) {
		t.Error("the gossip key is another one")
	}
	certificate, err := pki.ParseCertificate(node.Identity.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	if got := certificate.Subject.CommonName; got != "system:node:a" {
		t.Errorf("common name %s", got)
	}
	if len(certificate.IPAddresses) != 1 || certificate.IPAddresses[0].String() != "192.0.2.9" {
		t.Errorf("addresses %v: the server's must be left out", certificate.IPAddresses)
	}
	if _, err := node.Identity.AgentConfig(); err != nil {
		t.Error(err)
	}
	again, err := join.LoadOrJoin(t.Context(), dir, join.Config{NodeName: "a"})
	if err != nil || !bytes.Equal(again.Identity.CertPEM, node.Identity.CertPEM) {
		t.Errorf("the second start did not use what is on disk: %v", err)
	}
	if strings.Contains(s.log.String(), s.cluster.NodeToken.Secret) {
		t.Error("the token's secret is in the log")
	}
}

func TestJoinRefused(t *testing.T) {
	s, other := newSite(t, time.Now()), newSite(t, time.Now())
	wrongSecret := s.cluster.NodeToken
	wrongSecret.Secret = strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		change func(*join.Config)
		want   error
	}{
		"a wrong secret":           {func(c *join.Config) { c.Token = wrongSecret.Text() }, join.ErrTokenRefused},
		"another cluster's token":  {func(c *join.Config) { c.Token = other.cluster.NodeToken.Text() }, join.ErrWrongCluster},
		"another cluster's server": {func(c *join.Config) { c.Servers = []string{other.address} }, join.ErrWrongCluster},
		"no token":                 {func(c *join.Config) { c.Token = "" }, pki.ErrBadToken},
		"no server":                {func(c *join.Config) { c.Servers = nil }, join.ErrNoServers},
		"a server's name":          {func(c *join.Config) { c.NodeName = "server-1" }, join.ErrRefused},
		"a name that is none":      {func(c *join.Config) { c.NodeName = "../a" }, pki.ErrBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			config := s.config("a")
			c.change(&config)
			if _, err := join.Join(t.Context(), config); !errors.Is(err, c.want) {
				t.Errorf("want %v, got %v", c.want, err)
			}
		})
	}
}

func TestJoinGoesToTheNextServer(t *testing.T) {
	s := newSite(t, time.Now())
	config := s.config("a")
	config.Servers = []string{"127.0.0.1:1", s.address}
	if _, err := join.Join(t.Context(), config); err != nil {
		t.Error(err)
	}
}

func TestJoinEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	config := newSite(t, time.Now()).config("a")
	config.Servers = []string{"127.0.0.1:1"}
	if _, err := join.Join(ctx, config); !errors.Is(err, context.Canceled) {
		t.Errorf("want context.Canceled, got %v", err)
	}
}

// TestClocks: certificates that were issued by a clock far away.
func TestClocks(t *testing.T) {
	now := time.Now()
	future, past := now.Add(48*time.Hour), now.Add(-2*365*24*time.Hour)
	for name, c := range map[string]struct {
		issued, clock time.Time
		want          string
	}{
		"behind the server":        {future, future, "is not yet valid: the clocks of this machine and the server differ by 4"},
		"ahead of the server":      {past, past, "has expired: the clocks of this machine and the server differ by 175"},
		"a certificate never kept": {past, now, "has expired, although the clocks agree"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.issued)
			s.clock = c.clock
			_, err := join.Join(t.Context(), s.config("a"))
			if !errors.Is(err, join.ErrClocksDiffer) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}

func TestHandlerRefusals(t *testing.T) {
	cluster, err := pki.InitCluster(t.TempDir(), nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	handler := join.NewHandler(join.HandlerConfig{
		Signer: cluster.CA, CAPEM: cluster.CA.CertPEM(), Tokens: []pki.Token{cluster.NodeToken}, GossipKey: cluster.GossipKey,
		Servers: []pki.Server{{Name: "server-1", Endpoint: "one.example:6443"}},
	})
	token := cluster.NodeToken.Text()
	for name, c := range map[string]struct {
		method, body string
		code         int32
		message      string
	}{
		"GET":             {"GET", "", 405, "only POST"},
		"no JSON":         {"POST", "<", 400, "not a join request"},
		"too large":       {"POST", `{"token":"` + strings.Repeat("a", 65<<10) + `"}`, 400, "too large"},
		"no token":        {"POST", `{"nodeName":"a"}`, 401, "copy the text of pki/node.token"},
		"a server's name": {"POST", `{"token":"` + token + `","nodeName":"one.example"}`, 403, "is that of a server"},
		"no request":      {"POST", `{"token":"` + token + `","nodeName":"a"}`, 400, "CERTIFICATE REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest(c.method, join.Path, strings.NewReader(c.body)))
			var status metav1.Status
			if err := json.Unmarshal(recorder.Body.Bytes(), &status); err != nil {
				t.Fatal(err)
			}
			if status.Kind != "Status" || status.Code != c.code || recorder.Code != int(c.code) || !strings.Contains(status.Message, c.message) {
				t.Errorf("%d %+v", recorder.Code, status)
			}
		})
	}
}
