package server

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/internal/clip"
	"github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/auditlog"
)

// routes are paths of every kind that the API's port answers: all services of the parts, documents, and requests for objects.
func (s *site) routes() []string {
	paths := []string{
		"/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/livez", "/readyz", "/readyz/log", "/version", "/metrics", "/metrics/slis",
		"/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/.well-known/openid-configuration", "/debug/pprof", "/debug/api_priority_and_fairness/dump_queues",
		"/api/v1/namespaces", "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods/p/log", "/api/v1/namespaces/default/pods/p/exec",
		"/api/v1/namespaces/default/services/s/proxy", "/api/v1/nodes/n/proxy", "/api/v1/namespaces/default/pods/p/binding",
		"/apis/authorization.k8s.io/v1/subjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews", "/apis/metrics.k8s.io/v1beta1/nodes",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/nobody.example.com/v1/things", "/nothing",
	}
	for _, service := range s.server.api.services(s.client) {
		paths = append(paths, service.Prefix)
	}
	return paths
}

// libraries is what those of Kubernetes log in all tests of this package.
var libraries counted

// TestMain lets them log as the command does; who logs must not be changed while tests run.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.FromSlogHandler(clip.Handler(slog.NewTextHandler(&libraries, nil))))
	os.Exit(m.Run())
}

// counted is a writer that keeps nothing.
type counted struct{ bytes atomic.Int64 }

func (c *counted) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

const (
	// largestBytes is about the largest text that a request can have in its head. What goes to every path has largeBytes, which takes less
	// time.
	largestBytes = 700_000
	largeBytes   = 100_000
)

// large is a text of a test's own: what keeps a part of it keeps the whole.
func large() string { return strings.Repeat("x", largeBytes) }

// largest are requests with a text of largeBytes in one place.
var largest = map[string]func(path string) *http.Request{
	"a name": func(path string) *http.Request {
		return ask(http.MethodDelete, strings.TrimSuffix(path, "/")+"/"+large(), "")
	},
	"a read name": func(path string) *http.Request {
		return ask(http.MethodGet, strings.TrimSuffix(path, "/")+"/"+large(), "")
	},
	"a query":    func(path string) *http.Request { return ask(http.MethodPost, path+"?fieldManager="+large(), "{}") },
	"a selector": func(path string) *http.Request { return ask(http.MethodGet, path+"?labelSelector=a%3D"+large(), "") },
	"a body":     func(path string) *http.Request { return ask(http.MethodPost, path, `{"kind":"`+large()+`"}`) },
	"no body":    func(path string) *http.Request { return ask(http.MethodPut, path, large()) },
	"a node's name": func(path string) *http.Request {
		return ask(http.MethodPost, path, `{"token":"x","nodeName":"`+large()[:60_000]+`"}`)
	},
	"an agent":        header("User-Agent", ""),
	"an id":           header("Audit-ID", ""),
	"a token":         header("Authorization", "Bearer "),
	"another user":    header("Impersonate-User", ""),
	"a forwarder":     header("X-Forwarded-For", ""),
	"a form":          header("Content-Type", "application/"),
	"a wanted form":   header("Accept", "application/json;as="),
	"a protocol":      header("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."),
	"a remote user":   header("X-Remote-User", ""),
	"a host":          func(path string) *http.Request { r := ask(http.MethodGet, path, ""); r.Host = large(); return r },
	"another's verbs": func(path string) *http.Request { r := ask(http.MethodGet, path, ""); r.Method = large(); return r },
}

func ask(method, target, body string) *http.Request {
	r := &http.Request{Method: method, Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{}, Host: "server-1", RemoteAddr: "192.0.2.1:1234", RequestURI: target}
	r.URL, _ = url.ParseRequestURI(target)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func header(name, begin string) func(string) *http.Request {
	return func(path string) *http.Request {
		r := ask(http.MethodPost, path, "{}")
		r.Header.Set(name, begin+large())
		return r
	}
}

// shown is what the handshake with a certificate leaves; nil: none was shown.
func (s *site) shown(t *testing.T, id *trust.Identity) *tls.ConnectionState {
	t.Helper()
	if id == nil {
		return &tls.ConnectionState{}
	}
	certificate, err := trust.ParseCertificate(id.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := trust.ParseCertificate(s.cluster.CA.CertPEM())
	if err != nil {
		t.Fatal(err)
	}
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate, authority}}}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // pools give up what they hold at the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// unrecorded is an answer that nobody keeps.
type unrecorded struct {
	header http.Header
	code   int
}

func (u *unrecorded) Header() http.Header         { return u.header }
func (u *unrecorded) WriteHeader(code int)        { u.code = code }
func (u *unrecorded) Write(p []byte) (int, error) { return len(p), nil }
func (u *unrecorded) Flush()                      {}

// TestTheLargestRequestsLeaveNothing: somebody without a name, and an administrator, send the longest names, headers, queries and bodies to
// everything that the port answers. Neither the memory nor the logs keep them.
func TestTheLargestRequestsLeaveNothing(t *testing.T) {
	var logged counted
	lines := slog.NewTextHandler(&logged, nil)
	auditFile := filepath.Join(t.TempDir(), "audit.log")
	quiet := slog.New(slog.DiscardHandler)
	audited, stop, err := auditlog.Start(auditlog.Config{Path: auditFile, MaxSizeMiB: 1000, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := newSiteOf(t, Config{Logger: slog.New(lines), AuditLog: audited})
	send := func(r *http.Request, state *tls.ConnectionState) {
		r.TLS = state
		s.server.api.server.ServeHTTP(&unrecorded{header: http.Header{}}, r.WithContext(t.Context()))
	}
	const memoryMax, logMax, eventMax = 24 << 20, 256 << 10, 32 << 10
	requests := int64(0)
	before, loggedBefore := heapBytes(), logged.bytes.Load()+libraries.bytes.Load()
	for _, id := range []*trust.Identity{nil, s.cluster.Admin} {
		state := s.shown(t, id)
		for _, path := range s.routes() {
			for _, form := range largest {
				send(form(path), state)
				requests++
			}
		}
	}
	for range 100 { // the attack that filled a server: refused, and each with another name
		send(ask(http.MethodDelete, "/api/v1/namespaces/default/configmaps/"+strings.Repeat("x", largestBytes), ""), s.shown(t, nil))
		send(largest["a node's name"]("/setpoint.v1.JoinService/Join"), s.shown(t, nil))
		requests += 2
	}
	if kept := heapBytes() - before; kept > memoryMax {
		t.Errorf("%d requests leave %d MiB", requests, kept>>20)
	}
	if written := logged.bytes.Load() + libraries.bytes.Load() - loggedBefore; written > logMax {
		t.Errorf("%d requests wrote %d KiB of log", requests, written>>10)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(auditFile); err != nil || info.Size() == 0 || info.Size() > requests*eventMax {
		t.Errorf("%d requests left %d KiB of audit events (%v)", requests, info.Size()>>10, err)
	}
	s.testRefusalsAreCounted(t)
}

// testRefusalsAreCounted: what a stranger did is a line or two, not one for each request.
func (s *site) testRefusalsAreCounted(t *testing.T) {
	w := httptest.NewRecorder()
	r := ask(http.MethodGet, "/api/v1/namespaces/kube-system/pods/"+parts.PodName(parts.APIServer, s.self.Name)+"/log", "")
	r.TLS = s.shown(t, s.cluster.Admin)
	s.server.api.server.ServeHTTP(w, r.WithContext(t.Context()))
	lines := slices.DeleteFunc(strings.Split(w.Body.String(), "\n"), func(line string) bool { return !strings.Contains(line, "user=system:anonymous") })
	if len(lines) == 0 || len(lines) > 20 || !strings.Contains(lines[0], "of 192.0.2.1") {
		t.Errorf("%d %d lines of refusals, the first: %.300s", w.Code, len(lines), w.Body)
	}
	if !strings.Contains(w.Body.String(), "…(100,000 bytes)") {
		t.Errorf("no line has a mark: %.300s", w.Body)
	}
}
