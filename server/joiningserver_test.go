package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/admin"
)

// serverToken has the server make a token for servers, as an administrator.
func (s *site) serverToken(t *testing.T, servers int) *jointoken.Token {
	t.Helper()
	token, err := admin.CreateServerToken(t.Context(), s.restConfig(s.cluster.Admin), jointoken.Wanted{TTL: time.Hour, Nodes: servers})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s *site) restConfig(id *trust.Identity) *rest.Config {
	return &rest.Config{Host: "https://" + s.self.Endpoint, TLSClientConfig: rest.TLSClientConfig{
		CertData: id.CertPEM, KeyData: id.KeyPEM, CAData: id.CAPEM,
	}}
}

// joinAs is what `setpoint server --join` does first, into an empty folder.
func (s *site) joinAs(t *testing.T, name, address, token string) (dir string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	dir = t.TempDir()
	return dir, Join(ctx, JoinConfig{
		Servers: []string{s.self.Endpoint}, Token: token, Name: name, AdvertiseAddress: address, TrustDir: dir, Logger: slog.New(slog.DiscardHandler),
	})
}

// lockedBuffer is a log that the server may still write while a test reads it.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// TestJoiningAsAServer: the keys of the cluster go to who holds a token for servers, and asks under a name that nobody has; to nobody else.
func TestJoiningAsAServer(t *testing.T) {
	logged := &lockedBuffer{}
	s := newSiteOf(t, Config{Logger: slog.New(slog.NewTextHandler(logged, nil))})
	agents, servers := s.token(t), s.serverToken(t, 2)
	if _, err := s.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	dir, err := s.joinAs(t, "server-2", "192.0.2.2:6443", servers.Token)
	if err != nil {
		t.Fatal(err)
	}
	if joined, err := trust.LoadCluster(dir); err != nil || joined.CA.Pin() != s.cluster.CA.Pin() || !joined.Joining() {
		t.Errorf("it has no trust folder: %v", err)
	}
	other, err := tokens.New(tokens.RoleServer, strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	secretOf := func(token *jointoken.Token) string { return token.Token[strings.LastIndex(token.Token, ".")+1:] }
	deleted := s.serverToken(t, 1)
	if _, err := jointoken.Delete(t.Context(), s.client, deleted.Token); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		as, at, token string
		want          error
		text          string
	}{
		"an agent's token":                     {"server-3", "192.0.2.3:6443", agents.Token, join.ErrNotForServers, "token create --for server"},
		"an agent's token, called a server's":  {"server-3", "192.0.2.3:6443", "server." + s.cluster.CA.Pin() + "." + secretOf(agents), join.ErrServerTokenRefused, "token create --for server"},
		"another cluster's token":              {"server-3", "192.0.2.3:6443", other.Text(), join.ErrWrongCluster, "belongs to another cluster"},
		"a deleted token":                      {"server-3", "192.0.2.3:6443", deleted.Token, join.ErrServerTokenRefused, "token create --for server"},
		"no token":                             {"server-3", "192.0.2.3:6443", "", tokens.ErrBad, ""},
		"a member's name":                      {"server-1", "192.0.2.3:6443", servers.Token, join.ErrRefused, "is a server of the cluster already"},
		"the name of one that joins elsewhere": {"server-2", "192.0.2.3:6443", servers.Token, join.ErrRefused, "choose another --name"},
		"a node's name":                        {"node-1", "192.0.2.3:6443", servers.Token, join.ErrRefused, "is a node"},
		"no name":                              {"../x", "192.0.2.3:6443", servers.Token, join.ErrRefused, "no name"},
		"two servers at once":                  {"a=b:1,c", "192.0.2.3:6443", servers.Token, join.ErrRefused, "no name"},
	} {
		if dir, err := s.joinAs(t, c.as, c.at, c.token); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v, %q", name, err, c.want, c.text)
		} else if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: the folder has %v", name, left)
		}
	}
	if _, err := s.joinAs(t, "server-2", "192.0.2.2:6443", servers.Token); err != nil {
		t.Errorf("again, from the same place: %v", err)
	}
	if _, err := s.joinAs(t, "server-3", "192.0.2.3:6443", servers.Token); err != nil {
		t.Errorf("the second of two: %v", err)
	}
	if _, err := s.joinAs(t, "server-4", "192.0.2.4:6443", servers.Token); !errors.Is(err, join.ErrRefused) || !strings.Contains(err.Error(), "as many servers as it may (2)") {
		t.Errorf("the third of two: %v", err)
	}
	s.noAgentByServerToken(t, servers, secretOf(servers))
	key, err := s.cluster.CA.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for what, secret := range map[string]string{"the token": secretOf(servers), "the key": strings.Split(string(key), "\n")[1]} {
		if strings.Contains(logged.String(), secret) {
			t.Errorf("%s is in the log", what)
		}
	}
}

// noAgentByServerToken: a token for servers is none for agents, and no bootstrap token.
func (s *site) noAgentByServerToken(t *testing.T, token *jointoken.Token, secret string) {
	t.Helper()
	if _, err := s.options(t, "by-server", t.TempDir(), token.Token).Join(t.Context()); !errors.Is(err, join.ErrNotForAgents) {
		t.Errorf("an agent: %v", err)
	}
	if _, err := s.options(t, "by-server", t.TempDir(), "node."+s.cluster.CA.Pin()+"."+secret).Join(t.Context()); !errors.Is(err, join.ErrTokenRefused) {
		t.Errorf("an agent that calls it a node's: %v", err)
	}
	config := s.restConfig(&trust.Identity{CAPEM: s.cluster.CA.CertPEM()})
	config.CertData, config.KeyData, config.BearerToken = nil, nil, secret[:6]+"."+secret[6:]
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(config.Host + "/api/v1/nodes")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a kubelet's bootstrap: %s", answer.Status)
	}
}

// TestWhatIsAnsweredToAServerIsPrivate: nothing on the way keeps it, and without TLS it is not sent.
func TestWhatIsAnsweredToAServerIsPrivate(t *testing.T) {
	s := newSite(t)
	body, err := json.Marshal(map[string]string{"token": s.serverToken(t, 1).Token, "name": "server-2", "address": "192.0.2.2:6443"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(s.restConfig(s.cluster.Admin))
	if err != nil {
		t.Fatal(err)
	}
	in := ask(http.MethodPost, join.ServerPath, string(body))
	w := httptest.NewRecorder()
	s.server.api.server.ServeHTTP(w, in.WithContext(t.Context()))
	if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "files") {
		t.Errorf("without TLS: %d, %s", w.Code, w.Body)
	}
	answer, err := client.Post("https://"+s.self.Endpoint+join.ServerPath, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Cache-Control") != "no-store" || !strings.Contains(string(text), "ca.key") {
		t.Errorf("%s, %v: %d bytes", answer.Status, answer.Header, len(text))
	}
}

// TestKnownAreThoseOfTheRecord: a server that has grown into a cluster asks all members, whatever its flags name.
func TestKnownAreThoseOfTheRecord(t *testing.T) {
	dir := t.TempDir()
	cluster, err := trust.InitCluster(dir, []trust.Server{{Name: "server-1", Endpoint: "192.0.2.1:6443"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	record := `{"servers":[{"id":"server-1","address":"192.0.2.1:6443"},{"id":"server-2+0a","address":"192.0.2.2:6443"},{"id":"server-3","address":"192.0.2.3:6443"}]}`
	if err := os.WriteFile(filepath.Join(dir, "pki", "founded.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	parsed := Parsed{Options: Options{Name: "server-1"}, servers: []trust.Server{{Name: "server-1"}, {Name: "server-3"}}}
	if got := parsed.known(cluster); len(got) != 1 || got[0].Name != "server-2" || got[0].Endpoint != "192.0.2.2:6443" {
		t.Errorf("%+v", got)
	}
}

// TestWhoHasATakenNameWaitsLong: only an administrator ends that, and each try asks the members.
func TestWhoHasATakenNameWaitsLong(t *testing.T) {
	taken := fmt.Errorf("%w: x", raftstore.ErrNameTaken)
	if wait, err := untilNextTry(taken); wait != nameRetryInterval || !errors.Is(err, errNameTaken) {
		t.Errorf("%s, %v", wait, err)
	}
	if wait, err := untilNextTry(io.EOF); wait != memberRetryInterval || !errors.Is(err, io.EOF) {
		t.Errorf("%s, %v", wait, err)
	}
}
