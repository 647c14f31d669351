package apiserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices"
	remotePath     = "/apis/stable.example.com/v1/namespaces/default/crontabs"
	aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// front is a second API server behind an HTTPS socket, which believes its front proxy
// who the user is.
type front struct {
	t      *testing.T
	hook   *hook // its socket and certificate
	server *Server
	remote *aggregation.Aggregator // of the server before it
	// how the server before it is known
	authorities *trust.Ring[trust.ProxyAuthority]
	identity    *aggregation.FrontProxy

	mu    sync.Mutex
	trust *x509.CertPool // of front proxies, as it was told last
	seen  []http.Header
	// answer, if set, takes requests instead of the server.
	answer http.HandlerFunc
}

// ServeHTTP checks what an aggregated server checks.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Header.Clone())
	answer := f.answer
	f.mu.Unlock()
	if !f.believes(r.TLS.PeerCertificates) {
		http.Error(w, "no front proxy", http.StatusUnauthorized)
		return
	}
	if answer != nil {
		answer(w, r)
		return
	}
	u := &user.DefaultInfo{Name: r.Header.Get("X-Remote-User"), Groups: r.Header["X-Remote-Group"]}
	f.server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, user.Info(u))))
}

// believes looks with each request, as aggregated servers do, whether the connection is that of a front proxy.
func (f *front) believes(certificates []*x509.Certificate) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(certificates) == 0 || certificates[0].Subject.CommonName != trust.FrontProxyName {
		return false
	}
	_, err := certificates[0].Verify(x509.VerifyOptions{Roots: f.trust, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// readTold reads what the ConfigMap of the server before it says of front proxies.
func (f *front) readTold(ca *trust.CA) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trust = x509.NewCertPool()
	told, err := f.identity.Configuration(ca)
	if err != nil {
		f.t.Fatal(err)
	}
	f.trust.AppendCertsFromPEM([]byte(told["requestheader-client-ca-file"]))
}

func (f *front) answerWith(answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// lastSeen is the header of the last request that a user sent.
func (f *front) lastSeen(name string) http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range slices.Backward(f.seen) {
		if h.Get("X-Remote-User") == name {
			return h
		}
	}
	f.t.Fatalf("%s was never seen", name)
	return nil
}

// newAggregatingServer returns a server, and one behind it that serves custom resources
// of stable.example.com/v1 as the Service default/hook.
func newAggregatingServer(t *testing.T) (*Server, *front) {
	t.Helper()
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := trust.NewFrontProxyRing(ca)
	if err != nil {
		t.Fatal(err)
	}
	identity := aggregation.NewFrontProxy(authorities, nil, time.Now)
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	remote := aggregation.New(aggregation.Config{
		Store: config.Storage, Services: dynamic.NewServiceResolver(config.Storage), Codecs: NewCodecs(config.Scheme), Logger: config.Logger,
		Certificate: identity.Certificate, Authority: identity.Authority, Dial: new(net.Dialer).DialContext,
	})
	config.Elsewhere = remote
	measure(t, &config)
	config.Discovery, err = discovery.New(discovery.Config{
		Kinds: config.Kinds, Remotes: remote.Remotes,
		Priority: func(gv schema.GroupVersion) (int32, int32) { p := kinds.PriorityOf(gv); return p.Group, p.Version },
	})
	if err != nil {
		t.Fatal(err)
	}
	server, _ := startServer(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); remote.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	f := newFront(t, server)
	f.remote, f.authorities, f.identity = remote, authorities, identity
	f.readTold(ca)
	return server, f
}

func newFront(t *testing.T, server *Server) *front {
	t.Helper()
	f := &front{t: t, hook: newHook(t, nil), server: newCustomServer(t)}
	define(t, f.server, crontabs)
	socket := httptest.NewUnstartedServer(f)
	socket.TLS = &tls.Config{Certificates: f.hook.server.TLS.Certificates, ClientAuth: tls.RequestClientCert}
	socket.StartTLS()
	t.Cleanup(socket.Close)
	_, port, _ := net.SplitHostPort(socket.Listener.Addr().String())
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: `{"metadata":{"name":"hook"},"spec":{"ports":[{"port":443,"targetPort":8443}]}}`})
	writeSlice(t, server, "hook", port)
	return f
}

// register makes an APIService for the second server and says whether it is available,
// as the controller would.
func (f *front) register(server *Server, group string, priority int, available metav1.ConditionStatus) {
	f.t.Helper()
	name := "v1." + group
	body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"group":%q,"version":"v1","groupPriorityMinimum":%d,"versionPriority":15,
		"service":{"namespace":"default","name":"hook"},"caBundle":%q}}`, name, group, priority, base64.StdEncoding.EncodeToString(f.hook.ca))
	mustDo[apiregistrationv1.APIService](f.t, server, call{method: "POST", path: apiServicePath, body: body})
	f.judge(server, name, available)
}

func (f *front) judge(server *Server, name string, available metav1.ConditionStatus) {
	f.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Available","status":%q,"reason":"Judged","message":"by the test"}]}}`, available)
	mustDo[apiregistrationv1.APIService](f.t, server, call{method: "PATCH", path: apiServicePath + "/" + name + "/status", contentType: patchTypeOf["merge"], body: patch})
}

func TestRequestsArePassedOnInTheUsersName(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.register(server, "stable.example.com", 2000, metav1.ConditionTrue)
	eventually(t, "it is passed on", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusOK })
	jane := &user.DefaultInfo{Name: "jane", UID: "u1", Groups: []string{"devs", user.SystemPrivilegedGroup}, Extra: map[string][]string{"example.com/team": {"blue"}}}
	created := mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: remotePath, as: jane, body: crontab("a", `{"cronSpec":"* * * * 1"}`)})
	if created.GetUID() == "" {
		t.Error("not created")
	}
	h := f.lastSeen("jane")
	want := map[string][]string{"X-Remote-Uid": {"u1"}, "X-Remote-Group": {"devs", user.SystemPrivilegedGroup}, "X-Remote-Extra-Example.com%2fteam": {"blue"}}
	got := map[string][]string{}
	for name := range want {
		got[name] = h[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, h)
	}
	table := call{path: remotePath, accept: "application/json;as=Table;g=meta.k8s.io;v=v1"}.do(t, server)
	if !strings.Contains(table.body, `"kind":"Table"`) {
		t.Errorf("table: %d %s", table.code, table.body)
	}
	if got := (call{method: "DELETE", path: remotePath + "/none"}).do(t, server); got.code != 404 || got.status.Details == nil || got.status.Details.Name != "none" {
		t.Errorf("an answer of the other server: %d %s", got.code, got.body)
	}
	if got := (call{path: remotePath, as: &user.DefaultInfo{Name: "eve"}}).do(t, server); got.code != http.StatusForbidden {
		t.Errorf("a stranger: %d", got.code)
	}
}

// TestNewServersAreKnownAtOnce: nobody is told 404 who was told of the APIService.
func TestNewServersAreKnownAtOnce(t *testing.T) {
	server, f := newAggregatingServer(t)
	for i := range 20 {
		group := fmt.Sprintf("g%d.example.com", i)
		f.register(server, group, 2000, metav1.ConditionFalse)
		if got := (call{path: "/apis/" + group + "/v1/things"}).do(t, server); got.code != http.StatusServiceUnavailable {
			t.Fatalf("%s: %d", group, got.code)
		}
	}
}

// TestAnswersSayEverythingOnce: the other server says of its answer what this one says
// of all, since it has the same chain before it.
func TestAnswersSayEverythingOnce(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.register(server, "stable.example.com", 2000, metav1.ConditionTrue)
	eventually(t, "it is passed on", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusOK })
	f.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Audit-Id", "the other's")
		w.Header().Set("Cache-Control", "public")
		w.Header().Set("Etag", "the other's")
		w.Header()["Warning"] = []string{`299 - "one"`, `299 - "two"`}
	})
	got := call{path: remotePath}.do(t, server).header
	if ids := got["Audit-Id"]; len(ids) != 1 || ids[0] == "the other's" {
		t.Errorf("Audit-Id: %q", ids)
	}
	want := http.Header{"Cache-Control": {"no-cache, private"}, "Etag": {"the other's"}, "Warning": {`299 - "one"`, `299 - "two"`}}
	for name := range want {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWatchesArePassedOn(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.register(server, "stable.example.com", 2000, metav1.ConditionTrue)
	eventually(t, "it is passed on", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusOK })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://in-process"+remotePath+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Transport(Caller{User: admin}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: remotePath, body: crontab("w", `{"cronSpec":"* * * * 1"}`)})
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, `"type":"ADDED"`) || !strings.Contains(line, `"name":"w"`) {
		t.Errorf("%q, %v", line, err)
	}
}

func TestWhoIsNotAvailableIsNotAsked(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.register(server, "stable.example.com", 2000, metav1.ConditionFalse)
	unavailable := refusal{code: 503, reason: metav1.StatusReasonServiceUnavailable, messageHas: "service unavailable: APIService v1.stable.example.com: Judged: by the test"}
	eventually(t, "it is known", func() bool { return strings.Contains(call{path: remotePath}.do(t, server).body, "Judged") })
	unavailable.check(t, "unavailable", call{path: remotePath}.do(t, server))
	f.judge(server, "v1.stable.example.com", metav1.ConditionTrue)
	eventually(t, "it is available", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusOK })
	f.answerWith(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://192.0.2.1/secret", http.StatusFound)
	})
	got := call{path: remotePath}.do(t, server)
	if got.code/100 == 3 || got.header.Get("Location") != "" {
		t.Errorf("a redirect came through: %d %s", got.code, got.header.Get("Location"))
	}
	mustDo[metav1.Status](t, server, call{method: "DELETE", path: apiServicePath + "/v1.stable.example.com"})
	eventually(t, "it is forgotten", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusNotFound })
}

func TestTheClusterItselfIsNeverPassedOn(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.register(server, "apiregistration.k8s.io", 2000, metav1.ConditionFalse)
	f.register(server, "stable.example.com", 2000, metav1.ConditionFalse)
	eventually(t, "the other is known", func() bool { return call{path: remotePath}.do(t, server).code == 503 })
	mustDo[apiregistrationv1.APIServiceList](t, server, call{path: apiServicePath})
}

// offeredGroups are the groups of the aggregated discovery, and those that are stale.
func offeredGroups(t *testing.T, server *Server) (names, stale []string) {
	t.Helper()
	for _, g := range mustDo[apidiscoveryv2.APIGroupDiscoveryList](t, server, call{path: "/apis", accept: aggregatedType}).Items {
		names = append(names, g.Name)
		for _, v := range g.Versions {
			if v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				stale = append(stale, g.Name)
			}
		}
	}
	return names, stale
}

func TestGroupsOfOtherServersAreDiscovered(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.register(server, "stable.example.com", 17850, metav1.ConditionTrue)
	eventually(t, "it is fresh", func() bool {
		names, stale := offeredGroups(t, server)
		return slices.Contains(names, "stable.example.com") && len(stale) == 0
	})
	eventually(t, "it is passed on", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusOK })
	names, _ := offeredGroups(t, server)
	if diff := cmp.Diff([]string{"apiregistration.k8s.io", "stable.example.com", "apps", "events.k8s.io"}, names[:4]); diff != "" {
		t.Error(diff)
	}
	whole := call{path: "/apis", accept: aggregatedType}.do(t, server)
	if !strings.Contains(whole.body, `"resource":"crontabs"`) || strings.Count(whole.body, `"name":"apps"`) != 1 {
		t.Errorf("resources of the other server: %s", whole.body)
	}
	if group := mustDo[metav1.APIGroup](t, server, call{path: "/apis/stable.example.com"}); group.PreferredVersion.GroupVersion != "stable.example.com/v1" {
		t.Errorf("group: %+v", group)
	}
	if list := mustDo[metav1.APIResourceList](t, server, call{path: "/apis/stable.example.com/v1"}); len(list.APIResources) != 3 {
		t.Errorf("resources: %+v", list)
	}
	eventually(t, "its schemas are known", func() bool { return f.remote.Remotes()[0].Swagger != nil })
	v3 := call{path: openAPIURL(t, server, "apis/stable.example.com/v1")}.do(t, server)
	if v3.code != 200 || !strings.Contains(v3.body, "com.example.stable.v1.CronTab") {
		t.Errorf("v3: %d", v3.code)
	}
	v2 := call{path: "/openapi/v2"}.do(t, server)
	if !strings.Contains(v2.body, `"/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"`) || !strings.Contains(v2.body, `"com.example.stable.v1.CronTab"`) {
		t.Error("v2 lacks the other server")
	}
	// A bundle that nobody's certificate fits: another server, as far as anybody knows.
	patch := fmt.Sprintf(`{"spec":{"caBundle":%q}}`, base64.StdEncoding.EncodeToString(newHook(t, nil).ca))
	mustDo[apiregistrationv1.APIService](t, server, call{method: "PATCH", path: apiServicePath + "/v1.stable.example.com", contentType: patchTypeOf["merge"], body: patch})
	eventually(t, "it is stale", func() bool { _, stale := offeredGroups(t, server); return slices.Contains(stale, "stable.example.com") })
	if later := (call{path: "/apis", accept: aggregatedType}).do(t, server); !strings.Contains(later.body, `"resource":"crontabs"`) {
		t.Error("the resources are gone with the bundle")
	}
	patch = fmt.Sprintf(`{"spec":{"caBundle":%q}}`, base64.StdEncoding.EncodeToString(f.hook.ca))
	mustDo[apiregistrationv1.APIService](t, server, call{method: "PATCH", path: apiServicePath + "/v1.stable.example.com", contentType: patchTypeOf["merge"], body: patch})
	eventually(t, "it is fresh again", func() bool { _, stale := offeredGroups(t, server); return len(stale) == 0 })
	f.answerWith(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusServiceUnavailable) })
	f.judge(server, "v1.stable.example.com", metav1.ConditionFalse)
	eventually(t, "it is stale", func() bool { _, stale := offeredGroups(t, server); return slices.Contains(stale, "stable.example.com") })
	if later := (call{path: "/apis", accept: aggregatedType}).do(t, server); !strings.Contains(later.body, `"resource":"crontabs"`) {
		t.Error("the resources are gone with their server")
	}
}

// TestServersWithoutAggregatedDiscovery: older servers are asked version by version.
func TestServersWithoutAggregatedDiscovery(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.answerWith(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/openapi/v2":
			_, _ = io.WriteString(w, oldSwagger)
			return
		case "/apis/old.example.com/v1":
		default:
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"old.example.com/v1","resources":[{"name":"relics","kind":"Relic","namespaced":true,"verbs":["get"]}]}`)
	})
	f.register(server, "old.example.com", 2000, metav1.ConditionTrue)
	eventually(t, "its resources are known", func() bool {
		return strings.Contains(call{path: "/apis", accept: aggregatedType}.do(t, server).body, `"resource":"relics"`)
	})
	if _, stale := offeredGroups(t, server); len(stale) > 0 {
		t.Errorf("stale: %v", stale)
	}
	var url string
	eventually(t, "its schema is known", func() bool {
		url = openAPIURL(t, server, "apis/old.example.com/v1")
		return url != ""
	})
	got := call{path: url}.do(t, server)
	if !strings.Contains(url, "?hash=") || !strings.HasPrefix(got.body, `{"openapi":"3.0.0"`) || !strings.Contains(got.body, `"#/components/schemas/old.Relic"`) {
		t.Errorf("%s: %d %s", url, got.code, got.body)
	}
	binary := call{path: url, accept: "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}.do(t, server)
	if err := json.Unmarshal([]byte(got.body), &spec3.OpenAPI{}); err != nil || !strings.Contains(binary.body, "old.Relic") ||
		!strings.HasPrefix(binary.header.Get("Content-Type"), "application/com.github.proto-openapi.spec.v3") {
		t.Errorf("%v %s", err, binary.header.Get("Content-Type"))
	}
}

// oldSwagger is what an older server says of its schemas, with an operation that has no responses, as none should be.
const oldSwagger = `{"swagger":"2.0","info":{"title":"old","version":"v1"},"produces":["application/json"],"paths":{"/apis/old.example.com/v1/relics":{"get":{"operationId":"list","produces":["application/json"],
"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/old.Relic"}}}},"post":{"operationId":"create"}}},
"definitions":{"old.Relic":{"type":"object"}}}`

// openAPIURL is where the index of OpenAPI v3 says that a document is; empty: nowhere.
func openAPIURL(t *testing.T, server *Server, name string) string {
	t.Helper()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(call{path: "/openapi/v3"}.do(t, server).body), &index); err != nil {
		t.Fatal(err)
	}
	return index.Paths[name].ServerRelativeURL
}

// TestSchemasWithoutAHash: a server that tells no hashes of its documents has documents all the same.
func TestSchemasWithoutAHash(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.answerWith(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/openapi/v3":
			_, _ = io.WriteString(w, `{"paths":{"apis/plain.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/plain.example.com/v1"}}}`)
		case "/openapi/v3/apis/plain.example.com/v1":
			_, _ = io.WriteString(w, `{"openapi":"3.0.0","info":{"title":"plain"}}`)
		case "/openapi/v2":
			_, _ = io.WriteString(w, oldSwagger)
		case "/apis/plain.example.com/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"plain.example.com/v1","resources":[]}`)
		default:
			http.NotFound(w, r)
		}
	})
	f.register(server, "plain.example.com", 2000, metav1.ConditionTrue)
	const at = "/openapi/v3/apis/plain.example.com/v1"
	eventually(t, "its schema is known", func() bool { return openAPIURL(t, server, "apis/plain.example.com/v1") == at })
	if got := (call{path: at}).do(t, server); got.code != http.StatusOK || !strings.Contains(got.body, `"plain"`) || strings.Contains(got.header.Get("Cache-Control"), "immutable") {
		t.Errorf("%d %s %s", got.code, got.body, got.header.Get("Cache-Control"))
	}
}

// TestUpgradesArePassedOn: with the user's name, over real sockets on both sides.
func TestUpgradesArePassedOn(t *testing.T) {
	server, f := newAggregatingServer(t)
	f.register(server, "stable.example.com", 2000, metav1.ConditionTrue)
	eventually(t, "it is passed on", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusOK })
	f.answerWith(func(w http.ResponseWriter, r *http.Request) {
		conn, stream, err := w.(http.Hijacker).Hijack()
		if err != nil {
			f.t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(stream, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = stream.Flush()
		line, _ := stream.ReadString('\n')
		_, _ = fmt.Fprintf(stream, "%s says %s", r.Header.Get("X-Remote-User"), line)
		_ = stream.Flush()
	})
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, user.Info(admin))))
	}))
	defer outside.Close()
	conn, err := net.Dial("tcp", outside.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET %s/a/talk HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", remotePath); err != nil {
		t.Fatal(err)
	}
	stream := bufio.NewReader(conn)
	response, err := http.ReadResponse(stream, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", response, err)
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := stream.ReadString('\n'); err != nil || text != "admin says hello\n" {
		t.Errorf("%q, %v", text, err)
	}
}
