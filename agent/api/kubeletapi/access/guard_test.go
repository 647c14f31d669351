package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

func TestAttributes(t *testing.T) {
	for request, want := range map[string]string{
		"GET /stats/summary":             "get stats",
		"GET /metrics":                   "get metrics",
		"GET /metrics/cadvisor":          "get metrics",
		"GET /pods":                      "get pods, get proxy",
		"GET /healthz":                   "get healthz, get proxy",
		"GET /configz":                   "get configz, get proxy",
		"POST /checkpoint/a/b/c":         "create checkpoint",
		"GET /statusz":                   "get statusz",
		"GET /flagz":                     "get configz",
		"GET /containerLogs/a/b/c":       "get proxy",
		"GET /exec/a/b/c":                "create proxy",
		"POST /attach/a/b/c":             "create proxy",
		"GET /portForward/a/b":           "create proxy",
		"GET /metricsx":                  "get proxy",
		"DELETE /anything/metrics":       "delete proxy",
		"HEAD /metrics":                  " metrics",
		"GET /":                          "get proxy",
		"GET //metrics":                  "get proxy",
		"GET /exec/../metrics/../exec/a": "create proxy",
	} {
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, "/", nil)
		r.URL.Path = path
		var got []string
		for _, a := range attributes("one", r) {
			if a.Resource != "nodes" || a.Name != "one" || a.Version != "v1" {
				t.Errorf("%s: %+v", request, a)
			}
			got = append(got, a.Verb+" "+a.Subresource)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
}

// servers know tokens "token of USER", and allow what is in allowed, as "USER VERB SUBRESOURCE".
type servers struct {
	allowed []string
	asked   []string
	down    bool
	hang    chan struct{}
}

func (s *servers) guard(t *testing.T) *Guard {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		s.asked = append(s.asked, "who is "+review.Spec.Token)
		if s.hang != nil {
			<-s.hang
		}
		if s.down {
			return true, nil, errors.New("no server answers")
		}
		user, known := strings.CutPrefix(review.Spec.Token, "token-of-")
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: authenticationv1.UserInfo{
			Username: user, UID: "uid", Groups: []string{"group"}, Extra: map[string]authenticationv1.ExtraValue{"a": {"b"}},
		}}
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		if review.Spec.UID != "uid" || !slices.Equal(review.Spec.Groups, []string{"group"}) || review.Spec.Extra["a"][0] != "b" {
			t.Errorf("asked for %+v", review.Spec)
		}
		what := fmt.Sprintf("%s %s %s", review.Spec.User, review.Spec.ResourceAttributes.Verb, review.Spec.ResourceAttributes.Subresource)
		s.asked = append(s.asked, what)
		review.Status.Allowed = slices.Contains(s.allowed, what)
		return true, review, nil
	})
	return New(Config{
		Node: "one", Client: client, ServersOnly: func(path string) bool { return strings.HasPrefix(path, "/dial/") },
		Nodes:  func(path string) bool { return strings.HasPrefix(path, "/layers/") },
		Logger: slog.New(slog.DiscardHandler),
	})
}

func ask(g *Guard, method, path, authorization string) (int, string) {
	handler := g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	r := httptest.NewRequest(method, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestWhoMayAsk(t *testing.T) {
	s := &servers{allowed: []string{"prometheus get metrics", "reader get pods", "admin get proxy", "admin create proxy"}}
	for _, c := range []struct {
		method, path, authorization string
		code                        int
		text                        string
	}{
		{"GET", "/metrics", "", 401, "Unauthorized"},
		{"GET", "/metrics", "Basic token-of-prometheus", 401, "Unauthorized"},
		{"GET", "/metrics", "Bearer ", 401, "Unauthorized"},
		{"GET", "/metrics", "Bearer stranger", 401, "Unauthorized"},
		{"GET", "/metrics", "Bearer " + strings.Repeat("x", tokenBytesMax+1), 401, "Unauthorized"},
		{"GET", "/metrics/cadvisor", "Bearer token-of-prometheus", 200, "served"},
		{"GET", "/metrics", "bearer token-of-prometheus", 200, "served"},
		{"POST", "/metrics", "Bearer token-of-prometheus", 403, "Forbidden (user=prometheus, verb=create, resource=nodes, subresource(s)=[metrics])"},
		{"GET", "/pods", "Bearer token-of-prometheus", 403, "Forbidden (user=prometheus, verb=get, resource=nodes, subresource(s)=[pods])"},
		{"GET", "/pods", "Bearer token-of-reader", 200, "served"},
		{"GET", "/pods", "Bearer token-of-admin", 200, "served"},
		{"GET", "/exec/a/b/c", "Bearer token-of-admin", 200, "served"},
		{"GET", "/exec/a/b/c", "Bearer token-of-reader", 403, "Forbidden (user=reader, verb=create, resource=nodes, subresource(s)=[proxy])"},
		{"GET", "/dial/10.0.0.1:80", "Bearer token-of-admin", 403, "Forbidden: this is for the cluster's servers"},
		{"GET", "/dial/10.0.0.1:80", "Bearer stranger", 401, "Unauthorized"},
	} {
		if code, text := ask(s.guard(t), c.method, c.path, c.authorization); code != c.code || text != c.text {
			t.Errorf("%s %s of %q: %d %s, want %d %s", c.method, c.path, c.authorization, code, text, c.code, c.text)
		}
	}
	g := s.guard(t)
	g.NoTokens = true
	if code, _ := ask(g, "GET", "/metrics", "Bearer token-of-prometheus"); code != 401 {
		t.Errorf("a token was taken though none should be: %d", code)
	}
}

func TestServersNeedNoToken(t *testing.T) {
	s := &servers{down: true}
	called := false
	handler := s.guard(t).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	r := httptest.NewRequest(http.MethodGet, "/dial/10.0.0.1:80", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if !called || len(s.asked) > 0 {
		t.Errorf("called %v, asked %q", called, s.asked)
	}
}

func TestAnswersAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{allowed: []string{"prometheus get metrics"}}
		g := s.guard(t)
		expect := func(authorization string, code int, asked ...string) {
			t.Helper()
			s.asked = nil
			if got, text := ask(g, "GET", "/metrics", "Bearer "+authorization); got != code || !slices.Equal(s.asked, asked) {
				t.Errorf("%d %s after asking %q, want %d after %q", got, text, s.asked, code, asked)
			}
		}
		who, may := "who is token-of-prometheus", "prometheus get metrics"
		expect("token-of-prometheus", 200, who, may)
		expect("token-of-prometheus", 200)
		expect("stranger", 401, "who is stranger")
		expect("stranger", 401)
		time.Sleep(tokenUnknownTTL + time.Second)
		expect("stranger", 401, "who is stranger")
		time.Sleep(tokenTTLDefault)
		expect("token-of-prometheus", 200, who)
		s.allowed = nil
		time.Sleep(allowedTTLDefault)
		expect("token-of-prometheus", 403, who, may)
		expect("token-of-prometheus", 403)
		time.Sleep(deniedTTLDefault + time.Second)
		expect("token-of-prometheus", 403, may)
		s.down = true
		time.Sleep(tokenTTLDefault)
		expect("token-of-prometheus", 500, who)
	})
}

func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{hang: make(chan struct{})}
		g := s.guard(t)
		for range reviewsMax {
			g.reviews <- struct{}{}
		}
		if code, _ := ask(g, "GET", "/metrics", "Bearer token-of-prometheus"); code != http.StatusTooManyRequests || len(s.asked) > 0 {
			t.Errorf("%d after asking %q", code, s.asked)
		}
		<-g.reviews
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		close(s.hang)
		if _, err := g.user(ctx, tokenKey{1}, "token-of-a"); err != nil {
			t.Error(err)
		}
		if len(g.reviews) != reviewsMax-1 {
			t.Errorf("%d questions are under way after the answer", len(g.reviews))
		}
	})
}

// TestWhoHasACertificate: servers ask for everything, nodes only for what is theirs, and that is no user's.
func TestWhoHasACertificate(t *testing.T) {
	guard := (&servers{allowed: []string{"admin get proxy"}}).guard(t)
	handler := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	verified := func(groups ...string) *tls.ConnectionState {
		leaf := &x509.Certificate{Subject: pkix.Name{Organization: groups}}
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
	}
	shown := verified("system:setpoint:servers")
	shown.VerifiedChains = nil
	for _, c := range []struct {
		who  string
		with *tls.ConnectionState
		path string
		want int
	}{
		{"a server", verified("system:setpoint:servers"), "/exec/a/b/c", 200},
		{"a server", verified("system:setpoint:servers"), "/layers/x", 200},
		{"a server", verified("system:setpoint:servers"), "/dial/x", 200},
		{"a node", verified("system:nodes"), "/layers/x", 200},
		{"a node", verified("system:nodes"), "/exec/a/b/c", 403},
		{"a node", verified("system:nodes"), "/dial/x", 403},
		{"a node", verified("system:nodes"), "/layers", 403},
		{"a node", verified("system:nodes"), "/pods", 403},
		{"a node that is a server too", verified("system:setpoint:servers", "system:nodes"), "/pods", 403},
		{"a certificate that was not verified", shown, "/pods", 401},
		{"a certificate that was not verified", shown, "/layers/x", 403},
		{"nobody", nil, "/layers/x", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.TLS = c.with
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s, %s: %d, want %d", c.who, c.path, w.Code, c.want)
		}
	}
	if code, _ := ask(guard, http.MethodGet, "/layers/x", "Bearer token-of-admin"); code != 403 {
		t.Errorf("a user with a token: %d", code)
	}
	if code, _ := ask(guard, http.MethodGet, "/anything", "Bearer token-of-admin"); code != 200 {
		t.Errorf("that user elsewhere: %d", code)
	}
}

// TestWhoIsRevokedIsRefused, though the servers' answers for his token are still remembered; what he has open ends.
func TestWhoIsRevokedIsRefused(t *testing.T) {
	s := &servers{allowed: []string{"prometheus get metrics"}}
	g := s.guard(t)
	g.Revoked = &revocation.Judge{}
	if code, text := ask(g, "GET", "/metrics", "Bearer token-of-prometheus"); code != http.StatusOK {
		t.Fatal(code, text)
	}
	as := func(name, group string) *http.Request {
		r := httptest.NewRequest("GET", "/layers/x", nil)
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name, Organization: []string{group}}}}}}
		return r
	}
	opened, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(opened); <-r.Context().Done() })).
			ServeHTTP(httptest.NewRecorder(), as("system:node:two", nodesGroup))
	}()
	<-opened
	g.Revoked.Use(revocation.NewList([]revocation.Entry{
		{Target: revocation.Target{Kind: revocation.User, Name: "prometheus"}}, {Target: revocation.Target{Kind: revocation.Node, Name: "two"}},
		{Target: revocation.Target{Kind: revocation.Server, Name: "s"}},
	}))
	<-ended
	if code, text := ask(g, "GET", "/metrics", "Bearer token-of-prometheus"); code != http.StatusUnauthorized || !strings.Contains(text, "user/prometheus was revoked on") {
		t.Error(code, text)
	}
	for name, want := range map[string]int{
		"system:node:two": http.StatusUnauthorized, "system:node:three": http.StatusOK, "system:setpoint:server:s": http.StatusUnauthorized,
	} {
		w := httptest.NewRecorder()
		g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, as(name, nodesGroup))
		if w.Code != want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
