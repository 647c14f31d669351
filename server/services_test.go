package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestServicesRefuseWhoIsNotAllowed: a node proves who it is, and still gets no archive
// of all Secrets and changes no membership.
func TestServicesRefuseWhoIsNotAllowed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	self := trust.Server{Name: "server-1", Endpoint: listener.Addr().String()}
	cluster, err := trust.InitCluster(t.TempDir(), []trust.Server{self}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server, err := Start(context.Background(), Config{
		Name: self.Name, DataDir: t.TempDir(), Trust: cluster, InitialServers: []trust.Server{self},
		Listener: listener, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	register(t, server, "node-1")
	node, err := cluster.CA.IssueNode("node-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	admin, err := cluster.CA.IssueAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	peers, _ := server.log.Handler()
	paths := map[string]bool{peers + "ReadIndex": false} // whether an administrator may
	for _, s := range server.api.admin.Services() {
		paths[s.Prefix] = true
	}
	for path, adminMay := range paths {
		if strings.HasSuffix(path, "/Moment") {
			continue // the revision of a time is of no object: everybody with a name may know it
		}
		method := http.MethodPost
		if strings.HasSuffix(path, "/History") || strings.HasSuffix(path, "/Diff") {
			method, path = http.MethodGet, path+"?kind=secret&namespace=kube-system&name=of-others"
		}
		// Of why, the object that is asked for decides.
		message := `{"kind": "secret", "namespace": "kube-system", "name": "of-others"}`
		if code := call(t, node, method, "https://"+self.Endpoint+path, message); code != http.StatusForbidden {
			t.Errorf("a node at %s: %d", path, code)
		}
		if code := call(t, admin, method, "https://"+self.Endpoint+path, "{}"); (code != http.StatusForbidden) != adminMay {
			t.Errorf("the administrator at %s: %d", path, code)
		}
	}
}

// call sends a message and returns the code of the answer.
func call(t *testing.T, who *trust.Identity, method, url, message string) int {
	t.Helper()
	config, err := who.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(message))
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
