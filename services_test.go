package setpoint

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// TestServicesRefuseWhoIsNotAllowed: a node proves who it is, and still gets no archive
// of all Secrets and changes no membership.
func TestServicesRefuseWhoIsNotAllowed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	self := pki.Server{Name: "server-1", Endpoint: listener.Addr().String()}
	trust, err := pki.InitCluster(t.TempDir(), []pki.Server{self}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server, err := StartServer(context.Background(), ServerConfig{
		Name: self.Name, DataDir: t.TempDir(), Trust: trust, InitialServers: []pki.Server{self},
		Listener: listener, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	node, err := trust.CA.IssueNode("node-1", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	admin, err := trust.CA.IssueAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	peers, _ := server.log.Handler()
	for path, adminMay := range map[string]bool{
		backupPath: true, changePath: true, membersPath: true, statusPath: true, peers + "ReadIndex": false,
	} {
		if code := post(t, node, "https://"+self.Endpoint+path); code != http.StatusForbidden {
			t.Errorf("a node at %s: %d", path, code)
		}
		if code := post(t, admin, "https://"+self.Endpoint+path); (code != http.StatusForbidden) != adminMay {
			t.Errorf("the administrator at %s: %d", path, code)
		}
	}
}

// post sends an empty message and returns the code of the answer.
func post(t *testing.T, who *pki.Identity, url string) int {
	t.Helper()
	config, err := who.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
