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
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// site is one cluster with one server on loopback.
type site struct {
	cluster *trust.Cluster
	mux     *http.ServeMux
	address string
	log     *bytes.Buffer
	// owners are the keys of names, by name; down is why they cannot be told.
	owners map[string]string
	down   error
	// clock is what the server says the time is.
	clock time.Time
}

// newSite makes a cluster whose certificates were issued at a time, and serves joins.
func newSite(t *testing.T, issued time.Time) *site {
	t.Helper()
	s := &site{log: &bytes.Buffer{}, owners: map[string]string{}, clock: time.Now()}
	servers := []trust.Server{{Name: "server-1", Endpoint: "192.0.2.1:6443"}}
	cluster := founded(t, servers, issued)
	id, err := cluster.LoadServer("server-1")
	if err != nil {
		t.Fatal(err)
	}
	config, err := id.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.cluster, s.mux = cluster, mux
	serving, err := cluster.CA.NodeServing()
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle(join.Path, join.NewHandler(join.HandlerConfig{
		Authority: cluster.CA, Serving: serving, Admits: s.admits, Claim: s.claim, Take: func(context.Context, string, string) error { return nil },
		GossipKeys: cluster.GossipKeys.Told, Servers: func() []trust.Server { return servers }, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
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

// founded makes a cluster on a machine whose clock says another time: a process's is not ahead of itself, but that of a bubble can be.
func founded(t *testing.T, servers []trust.Server, issued time.Time) *trust.Cluster {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(issued))
		if _, err := trust.InitCluster(dir, servers, issued); err != nil {
			t.Fatal(err)
		}
	})
	cluster, err := trust.LoadCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func (s *site) admits(_ context.Context, token tokens.Token) (bool, error) {
	return token == s.cluster.NodeToken, s.down
}

func (s *site) claim(_ context.Context, node, keyHash string, shown bool) error {
	if owner, taken := s.owners[node]; taken && owner != keyHash && (owner != "" || !shown) {
		return join.ErrNameTaken
	}
	s.owners[node] = keyHash
	return s.down
}

func (s *site) config(t *testing.T, node string) join.Config {
	t.Helper()
	key, err := trust.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return join.Config{Servers: []string{s.address}, Token: s.cluster.NodeToken.Text(), NodeName: node, KeyPEM: key}
}

func TestJoin(t *testing.T) {
	s := newSite(t, time.Now())
	config := s.config(t, "a")
	node, err := join.Join(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(node.GossipKeys.Told(), s.cluster.GossipKeys.Told()) || !bytes.Equal(node.Identity.KeyPEM, config.KeyPEM) {
		t.Error("the gossip key or the own key is another one")
	}
	if !node.Valid("a", time.Now()) || node.NeedsRenewal(time.Now()) {
		t.Error("what it got is not good")
	}
	client, err := trust.ParseCertificate(node.Identity.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	if len(client.DNSNames)+len(client.IPAddresses) > 0 || client.Subject.CommonName != "system:node:a" {
		t.Errorf("the client certificate: %s %v %v", client.Subject, client.DNSNames, client.IPAddresses)
	}
	serving, err := trust.ParseCertificate(node.Serving.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	if len(serving.DNSNames) != 1 || serving.DNSNames[0] != "a" || len(serving.IPAddresses) > 0 {
		t.Errorf("it serves as %v %v: loopback is nobody's own", serving.DNSNames, serving.IPAddresses)
	}
	if strings.Contains(s.log.String(), s.cluster.NodeToken.Secret) {
		t.Error("the token's secret is in the log")
	}
}

// TestANameBelongsToItsKey: the holder of a token gets no name that another key has; the
// key itself gets it again, with a token or with its certificate.
func TestANameBelongsToItsKey(t *testing.T) {
	s := newSite(t, time.Now())
	config := s.config(t, "a")
	node, err := join.Join(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = join.Join(t.Context(), s.config(t, "a"))
	if !errors.Is(err, join.ErrRefused) || !strings.Contains(err.Error(), "'kubectl delete node a' makes the name free") {
		t.Errorf("another key joined as a living node: %v", err)
	}
	if _, err := join.Join(t.Context(), config); err != nil {
		t.Errorf("the node itself, with a token: %v", err)
	}
	renewed, err := join.Renew(t.Context(), config.Servers, "a", node)
	if err != nil || bytes.Equal(renewed.Identity.CertPEM, node.Identity.CertPEM) || renewed.Serving == nil {
		t.Errorf("the node itself, with its certificate: %v", err)
	}
	if _, err := join.Renew(t.Context(), config.Servers, "b", node); !errors.Is(err, join.ErrTokenRefused) {
		t.Errorf("with its certificate, as another node: %v", err)
	}
	s.owners["a"] = "" // registered in another way: the certificate tells whose it is
	if _, err := join.Join(t.Context(), config); !errors.Is(err, join.ErrRefused) {
		t.Errorf("a token alone took the name of a node without a record: %v", err)
	}
	if _, err := join.Renew(t.Context(), config.Servers, "a", node); err != nil {
		t.Errorf("its certificate did not: %v", err)
	}
	delete(s.owners, "a")
	if _, err := join.Join(t.Context(), s.config(t, "a")); err != nil {
		t.Errorf("a name that is free again: %v", err)
	}
	if _, err := join.Renew(t.Context(), config.Servers, "a", node); !errors.Is(err, join.ErrRefused) {
		t.Errorf("the former owner of a name took it back: %v", err)
	}
}

// TestACertificateIsNoTokenForAnotherKey: whoever stole a connection's certificate, not
// its key, gets nothing certified.
func TestACertificateIsNoTokenForAnotherKey(t *testing.T) {
	s := newSite(t, time.Now())
	node, err := join.Join(t.Context(), s.config(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := node.Identity.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	key, err := trust.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.NewNodeRequest("a", key)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"nodeName": "a", "csrPem": string(request)})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	reply, err := client.Post("https://"+s.address+join.Path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "of another key") {
		t.Errorf("%d %s (%v)", reply.StatusCode, text, err)
	}
}

func TestAnEndedCertificateProvesNothing(t *testing.T) {
	s := newSite(t, time.Now())
	config := s.config(t, "a")
	node, err := join.Join(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.NewNodeRequest("a", config.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := trust.ParseNodeRequest(request, "a")
	if err != nil {
		t.Fatal(err)
	}
	if node.Identity.CertPEM, err = s.cluster.CA.SignNode(parsed, time.Now().Add(-366*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := join.Renew(t.Context(), config.Servers, "a", node); err == nil {
		t.Error("a certificate that has ended was renewed without a token")
	}
	if _, err := join.Join(t.Context(), config); err != nil {
		t.Errorf("with a token, as the holder of its key: %v", err)
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
		"no token":                 {func(c *join.Config) { c.Token = "" }, tokens.ErrBad},
		"no server":                {func(c *join.Config) { c.Servers = nil }, join.ErrNoServers},
		"a server's name":          {func(c *join.Config) { c.NodeName = "server-1" }, join.ErrRefused},
		"a name that is none":      {func(c *join.Config) { c.NodeName = "../a" }, trust.ErrBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			config := s.config(t, "a")
			c.change(&config)
			if _, err := join.Join(t.Context(), config); !errors.Is(err, c.want) {
				t.Errorf("want %v, got %v", c.want, err)
			}
		})
	}
}

// TestAServerOfAnOlderRelease knows nothing of servers that join: it is not the token that it refuses, and who joins asks again, for there
// may be a newer one behind the same address.
func TestAServerOfAnOlderRelease(t *testing.T) {
	for name, answer := range map[string]string{
		"401": `{"kind":"Status","code":401,"message":"Unauthorized"}`,
		"403": `{"kind":"Status","code":403,"message":"forbidden: User \"system:anonymous\" cannot post path \"/setpoint.v1.ServerJoinService/Join\""}`,
	} {
		t.Run(name, func(t *testing.T) {
			code, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			s := newSite(t, time.Now())
			asked := 0
			s.mux.HandleFunc(join.ServerPath, func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked > 1 { // a newer one
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, `{"kind":"Status","code":403,"message":"not you"}`)
					return
				}
				w.WriteHeader(code)
				_, _ = io.WriteString(w, answer)
			})
			var log bytes.Buffer
			_, err = join.Server(t.Context(), join.ServerConfig{
				Servers: []string{s.address}, Token: "server." + s.cluster.NodeToken.Pin + "." + s.cluster.NodeToken.Secret,
				Name: "server-2", Address: "192.0.2.2:6443", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if !join.IsFinal(err) || !strings.Contains(err.Error(), "not you") || !strings.Contains(log.String(), join.ErrOlderServer.Error()) {
				t.Errorf("%v, it said:\n%s", err, &log)
			}
		})
	}
}

func TestJoinGoesToTheNextServer(t *testing.T) {
	s := newSite(t, time.Now())
	config := s.config(t, "a")
	config.Servers = []string{"127.0.0.1:1", s.address}
	if _, err := join.Join(t.Context(), config); err != nil {
		t.Error(err)
	}
}

func TestJoinEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	config := newSite(t, time.Now()).config(t, "a")
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
			_, err := join.Join(t.Context(), s.config(t, "a"))
			if !errors.Is(err, join.ErrClocksDiffer) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}

func TestHandlerRefusals(t *testing.T) {
	cluster, err := trust.InitCluster(t.TempDir(), nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var down error
	handler := join.NewHandler(join.HandlerConfig{
		Authority: cluster.CA, Serving: cluster.CA, GossipKeys: cluster.GossipKeys.Told,
		Admits:  func(_ context.Context, token tokens.Token) (bool, error) { return token == cluster.NodeToken, down },
		Claim:   func(context.Context, string, string, bool) error { return nil },
		Take:    func(context.Context, string, string) error { return nil },
		Servers: func() []trust.Server { return []trust.Server{{Name: "server-1", Endpoint: "one.example:6443"}} },
	})
	token := cluster.NodeToken.Text()
	for name, c := range map[string]struct {
		method, body string
		code         int32
		message      string
	}{
		"GET":               {"GET", "", 405, "only POST"},
		"no JSON":           {"POST", "<", 400, "not a join request"},
		"too large":         {"POST", `{"token":"` + strings.Repeat("a", 65<<10) + `"}`, 400, "too large"},
		"no token":          {"POST", `{"nodeName":"a"}`, 401, "setpoint token create"},
		"another cluster":   {"POST", `{"token":"` + strings.Replace(token, cluster.CA.Pin(), strings.Repeat("0", 64), 1) + `","nodeName":"a"}`, 401, "setpoint token create"},
		"a server's name":   {"POST", `{"token":"` + token + `","nodeName":"one.example"}`, 403, "no node's"},
		"a name of the API": {"POST", `{"token":"` + token + `","nodeName":"localhost"}`, 403, "no node's"},
		"a long label":      {"POST", `{"token":"` + token + `","nodeName":"` + strings.Repeat("a", 64) + `"}`, 400, "63 bytes"},
		"no request":        {"POST", `{"token":"` + token + `","nodeName":"a"}`, 400, "CERTIFICATE REQUEST"},
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
	down = errors.New("no quorum")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest("POST", join.Path, strings.NewReader(`{"token":"`+token+`","nodeName":"a"}`)))
	if recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("who cannot look refuses for good: %d", recorder.Code)
	}
}

// TestNobodyJoinsBehind: a server that may hold the new keys and not know yet who was shut out before they were made certifies nobody.
func TestNobodyJoinsBehind(t *testing.T) {
	behind := func() bool { return false }
	for path, handler := range map[string]http.Handler{
		join.Path:       join.NewHandler(join.HandlerConfig{Follows: behind}),
		join.ServerPath: join.NewServerHandler(join.ServerHandlerConfig{Follows: behind}),
	} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest("POST", path, strings.NewReader("{}")))
		if recorder.Code != http.StatusServiceUnavailable || !strings.Contains(recorder.Body.String(), "ask again") {
			t.Errorf("%s: %d %s", path, recorder.Code, recorder.Body)
		}
	}
}
