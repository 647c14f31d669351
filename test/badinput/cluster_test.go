package badinput

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server"
)

// answerLimit is how long any refusal may take, on a machine that does much else.
const answerLimit = 30 * time.Second

// cluster are three servers and what they log.
type cluster struct {
	trust   *trust.Cluster
	servers []*server.Server
	hosts   []string
	admin   *http.Client
	log     *record
}

// record keeps what is logged.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Split(r.text.String(), "\n")
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{log: &record{}}
	klog.LogToStderr(false)
	klog.SetOutput(c.log)
	var listeners []net.Listener
	var servers []trust.Server
	for i := range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, listener)
		servers = append(servers, trust.Server{Name: fmt.Sprintf("server-%d", i+1), Endpoint: listener.Addr().String()})
		c.hosts = append(c.hosts, listener.Addr().String())
	}
	var err error
	if c.trust, err = trust.InitCluster(t.TempDir(), servers, time.Now()); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for i, self := range servers {
		s, err := server.Start(t.Context(), server.Config{
			Name: self.Name, DataDir: t.TempDir(), Trust: c.trust, InitialServers: servers, Listener: listeners[i], Logger: logger.With("server", self.Name),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.servers = append(c.servers, s)
	}
	t.Cleanup(c.stop)
	for _, s := range c.servers {
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.admin = c.client(t, c.trust.Admin)
	return c
}

// stop ends all servers at once: one after the other they would elect leaders.
func (c *cluster) stop() {
	var all sync.WaitGroup
	for _, s := range c.servers {
		all.Go(func() { _ = s.Stop() })
	}
	all.Wait()
}

// tls is the configuration of a client that shows an identity, or none.
func (c *cluster) tls(t *testing.T, id *trust.Identity) *tls.Config {
	t.Helper()
	config, err := c.trust.Admin.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Certificates = nil
	if id != nil {
		pair, err := tls.X509KeyPair(id.CertPEM, id.KeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func (c *cluster) client(t *testing.T, id *trust.Identity) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c.tls(t, id), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: answerLimit}
}

// dial opens a TLS connection to a server that speaks HTTP/1.1.
func (c *cluster) dial(t *testing.T, server int) *tls.Conn {
	t.Helper()
	config := c.tls(t, c.trust.Admin)
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", c.hosts[server], config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// do sends a request to a server and returns what it answers.
func (c *cluster) do(t *testing.T, client *http.Client, server int, r request) (code int, body string) {
	t.Helper()
	code, body, err := c.send(client, server, r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	return code, body
}

func (c *cluster) send(client *http.Client, server int, r request) (int, string, error) {
	out, err := http.NewRequest(r.method, "https://"+c.hosts[server], strings.NewReader(r.body))
	if err != nil {
		return 0, "", err
	}
	out.URL.Opaque = "//" + c.hosts[server] + r.path // as it is: nothing escaped or cleaned
	out.Header.Set("Content-Type", r.contentType)
	for name, values := range r.header {
		out.Header[name] = values
	}
	response, err := client.Do(out)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// request is what goes over the wire.
type request struct {
	method, path, contentType, body string
	header                          http.Header
}

// sameState fails unless all servers hold the same objects.
func (c *cluster) sameState(t *testing.T) {
	t.Helper()
	for range 1000 {
		states := map[string]bool{}
		revisions := map[uint64]bool{}
		for i, s := range c.servers {
			c.do(t, c.admin, i, request{method: http.MethodGet, path: "/api/v1/namespaces/default"}) // it has caught up
			status := s.Status()
			states[status.StateHash], revisions[status.StateRevision] = true, true
		}
		if len(revisions) > 1 {
			continue // something was written in between, such as a Lease
		}
		if len(states) > 1 {
			t.Errorf("at revision %v the states are %v", revisions, states)
		}
		return
	}
	t.Error("the servers never stood at one revision")
}
