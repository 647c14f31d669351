package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/web"
)

const secret = "SECRET"

// cluster is a server that notes what it was asked.
type cluster struct {
	*httptest.Server
	asked   []string
	headers http.Header
	body    string
	code    int
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{code: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.asked, c.headers, c.body = append(c.asked, r.Method+" "+r.URL.RequestURI()), r.Header, string(body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Content-Security-Policy", "script-src *")
		w.WriteHeader(c.code)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(c.Close)
	return c
}

// doorTo is a door to servers, and ask one request at it.
func doorTo(t *testing.T, urls ...string) http.Handler {
	t.Helper()
	servers := newServers(func() (all []Server, err error) {
		for _, url := range urls {
			all = append(all, Server{url, &rest.Config{Host: url, BearerToken: "token"}})
		}
		return all, nil
	})
	if err := servers.read(); err != nil {
		t.Fatal(err)
	}
	return newDoor(secret, servers, nil)
}

func newRequest(method, path, body string) *http.Request {
	return httptest.NewRequest(method, "http://127.0.0.1:8700"+path, strings.NewReader(body))
}

func ask(door http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := newRequest(method, path, body)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	return w
}

func TestWhoComesIn(t *testing.T) {
	door := doorTo(t, newCluster(t).URL)
	for name, c := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"the page":                  {"/SECRET/", nil, 200},
		"by name":                   {"/SECRET/", []string{"Host", "localhost:8700"}, 200},
		"a module":                  {"/SECRET/app.js", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		"typed":                     {"/SECRET/", []string{"Sec-Fetch-Site", "none"}, 200},
		"without the slash":         {"/SECRET", nil, 302},
		"its own origin":            {"/SECRET/server/version", []string{"Origin", "http://127.0.0.1:8700"}, 200},
		"no secret":                 {"/", nil, 404},
		"another secret":            {"/secret/", nil, 404},
		"part of the secret":        {"/SECRE/", nil, 404},
		"no secret at the API":      {"/server/version", nil, 404},
		"a name that leads here":    {"/SECRET/", []string{"Host", "example.com:8700"}, 403},
		"a name that begins so":     {"/SECRET/", []string{"Host", "127.0.0.1.example.com"}, 403},
		"no host":                   {"/SECRET/", []string{"Host", ""}, 403},
		"another origin":            {"/SECRET/server/version", []string{"Origin", "http://127.0.0.1:8701"}, 403},
		"an origin that is no name": {"/SECRET/server/version", []string{"Origin", "null"}, 403},
		"a link from elsewhere":     {"/SECRET/", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another port's page":       {"/SECRET/", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"an upgrade":                {"/SECRET/server/api/v1/namespaces/a/pods/b/log", []string{"Upgrade", "websocket"}, 403},
		"a path that climbs":        {"/SECRET/server/api/../version", nil, 400},
		"a path that climbs hidden": {"/SECRET/server/api/%2e%2e/version", nil, 400},
		"a double slash":            {"/SECRET/server//version", nil, 400},
		"no such file":              {"/SECRET/web.go", nil, 404},
	} {
		w := ask(door, "GET", c.path, "", c.headers...)
		if w.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
		checkGuarded(t, name, w)
	}
}

// checkGuarded: whatever is answered, a browser is told what it may do with it.
func checkGuarded(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("%s: the policy is %q", name, policy)
	}
	if caching := w.Header().Get("Cache-Control"); w.Code == http.StatusOK && caching != "no-store" {
		t.Errorf("%s: Cache-Control is %q", name, caching)
	}
	for header, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		"Set-Cookie": "", "Access-Control-Allow-Origin": "",
	} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("%s: %s is %q, want %q", name, header, got, want)
		}
	}
}

func TestWhatMayBeAsked(t *testing.T) {
	const pods = "/api/v1/namespaces/a/pods"
	c := newCluster(t)
	door := doorTo(t, c.URL)
	for name, q := range map[string]struct {
		method, path string
		want         int
	}{
		"what there is":           {"GET", "/apis", 200},
		"a version":               {"GET", "/apis/apps/v1", 200},
		"a list":                  {"GET", "/apis/apps/v1/deployments", 200},
		"a watch":                 {"GET", pods + "?watch=true", 200},
		"an object":               {"GET", pods + "/b", 200},
		"a name with a colon":     {"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", 200},
		"a log":                   {"GET", pods + "/b/log?follow=true", 200},
		"why":                     {"POST", "/setpoint.v1.ClusterService/Why", 200},
		"history":                 {"GET", "/setpoint.v1.ClusterService/History?kind=pod&name=b", 200},
		"which lessons":           {"GET", "/setpoint.v1.ClusterService/Lesson", 200},
		"a lesson, past the page": {"POST", "/setpoint.v1.ClusterService/Lesson", 405},
		"a loop, past the page":   {"POST", "/setpoint.v1.ClusterService/Pace", 405},
		"why by GET":              {"GET", "/setpoint.v1.ClusterService/Why", 405},
		"history by POST":         {"POST", "/setpoint.v1.ClusterService/History", 405},
		"a change of servers":     {"POST", "/setpoint.v1.ClusterService/Change", 405},
		"a backup":                {"GET", "/setpoint.v1.ClusterService/Backup", 404},
		"create":                  {"POST", pods, 405},
		"replace":                 {"PUT", pods + "/b", 405},
		"patch":                   {"PATCH", pods + "/b", 405},
		"delete":                  {"DELETE", pods + "/b", 405},
		"delete all":              {"DELETE", pods, 405},
		"preflight":               {"OPTIONS", pods, 405},
		"evict":                   {"POST", pods + "/b/eviction", 405},
		"a review":                {"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405},
		"exec":                    {"GET", pods + "/b/exec?command=sh", 403},
		"attach":                  {"GET", pods + "/b/attach", 403},
		"a port of a pod":         {"GET", pods + "/b/portforward", 403},
		"a page of a pod":         {"GET", pods + "/b/proxy/index.html", 403},
		"a page of a node":        {"GET", "/api/v1/nodes/n/proxy/logs/", 403},
		"a page, the old way":     {"GET", "/api/v1/proxy/namespaces/a/pods/b", 403},
		"a subresource":           {"GET", "/apis/apps/v1/namespaces/a/deployments/b/scale", 403},
		"Secrets":                 {"GET", "/api/v1/secrets", 403},
		"a Secret":                {"GET", "/api/v1/namespaces/a/secrets/b", 403},
		"a Secret, escaped":       {"GET", "/api/v1/namespaces/a%2Fsecrets%2Fb", 403},
		"a Secret, the old way":   {"GET", "/api/v1/watch/namespaces/a/secrets/b", 403},
		"metrics":                 {"GET", "/metrics", 404},
		"profiles":                {"GET", "/debug/pprof/heap", 404},
		"a door between servers":  {"POST", "/setpoint.v1.ClusterService/Status", 405},
	} {
		c.asked = nil
		w := ask(door, q.method, "/SECRET/server"+q.path, "")
		if w.Code != q.want || len(c.asked) > 0 != (q.want == http.StatusOK) {
			t.Errorf("%s: %d %s, want %d; the server was asked %q", name, w.Code, w.Body, q.want, c.asked)
		}
		checkGuarded(t, name, w)
	}
}

func TestWhatGoesToAServer(t *testing.T) {
	c := newCluster(t)
	door := doorTo(t, c.URL+"/below/")
	ask(door, "POST", "/SECRET/server/setpoint.v1.ClusterService/Why?a=b", `{"kind":"pod"}`, "Accept", "application/json", "Content-Type", "application/json",
		"Authorization", "Bearer another", "Impersonate-User", "root", "Cookie", "a=b", "Setpoint-Cause", "x", "X-Forwarded-For", "192.0.2.1")
	if want := "POST /below/setpoint.v1.ClusterService/Why?a=b"; c.asked[0] != want || c.body != `{"kind":"pod"}` {
		t.Errorf("the server was asked %q with %q, want %s", c.asked, c.body, want)
	}
	for name, want := range map[string]string{
		"Accept": "application/json", "Authorization": "Bearer token", "User-Agent": "setpoint-ui",
		"Impersonate-User": "", "Cookie": "", "Setpoint-Cause": "", "X-Forwarded-For": "", "Origin": "",
	} {
		if got := c.headers.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	c.asked = nil
	w := ask(door, "POST", why, strings.Repeat("x", bodyBytesMax+1))
	if w.Code != http.StatusRequestEntityTooLarge || c.asked != nil {
		t.Errorf("a large question: %d, %q", w.Code, c.asked)
	}
}

// broken is a server that ends each connection at once, and counts them.
func broken(t *testing.T) (url string, dialed *atomic.Int32) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	dialed = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			dialed.Add(1)
			_ = conn.Close()
		}
	}()
	return "http://" + listener.Addr().String(), dialed
}

const why = "/SECRET/server/setpoint.v1.ClusterService/Why"

// TestAServerThatIsGone is left for the next, and is not asked first again.
func TestAServerThatIsGone(t *testing.T) {
	gone, dialed := broken(t)
	there := newCluster(t)
	door := doorTo(t, gone, there.URL)
	for range 3 {
		if w := ask(door, "POST", why, "{}"); w.Code != http.StatusOK || there.body != "{}" {
			t.Errorf("%d %s; the server read %q", w.Code, w.Body, there.body)
		}
		if n := dialed.Load(); n != 1 {
			t.Errorf("the server that is gone was dialed %d times, want once", n)
		}
	}
	there.Close()
	if w := ask(door, "GET", "/SECRET/server/version", ""); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "no server answers: ") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestAServerThatCannotServe: one without a leader answers 503. It is left for the next; when all say so, the page hears it.
func TestAServerThatCannotServe(t *testing.T) {
	cut, there := newCluster(t), newCluster(t)
	door := doorTo(t, cut.URL, there.URL)
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		cut.code = code
		if w := ask(door, "POST", why, "{}"); w.Code != http.StatusOK || there.body != "{}" {
			t.Errorf("%d: %d %s; the server read %q", code, w.Code, w.Body, there.body)
		}
	}
	if len(cut.asked) != 1 || len(there.asked) != 2 {
		t.Errorf("the server that cannot serve was asked %q, the other %q", cut.asked, there.asked)
	}
	there.code = http.StatusServiceUnavailable
	if w := ask(door, "GET", "/SECRET/server/version", ""); w.Code != http.StatusGatewayTimeout || w.Body.String() != "{}" {
		t.Errorf("nobody can serve: %d %s", w.Code, w.Body)
	}
	there.Close()
	if w := ask(door, "GET", "/SECRET/server/version", ""); w.Code != http.StatusGatewayTimeout {
		t.Errorf("one cannot serve, one is gone: %d %s", w.Code, w.Body)
	}
}

// TestAServerThatHangs is left for the next, and a log that has nothing to say is waited for.
func TestAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		answers := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		s := newServers(nil)
		for name, transport := range map[string]http.RoundTripper{"hangs": hangs, "answers": answers} {
			s.all = append(s.all, reached{Server{Name: name}, &url.URL{}, transport})
		}
		s.current = "hangs"
		door, begin := newDoor(secret, s, nil), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		door.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/SECRET/server/api/v1/namespaces/a/pods/b/log", "").WithContext(ctx))
		if waited := time.Since(begin); waited != time.Hour || s.current != "hangs" {
			t.Errorf("the log was left after %s, and %s is asked next", waited, s.current)
		}
		begin = time.Now()
		w := ask(door, "GET", "/SECRET/server/version", "")
		if waited := time.Since(begin); w.Code != http.StatusOK || waited != headersTimeout || s.current != "answers" {
			t.Errorf("%d %s after %s, and %s is asked next", w.Code, w.Body, waited, s.current)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhoeverLeaves: a request that the browser gave up says nothing of the servers.
func TestWhoeverLeaves(t *testing.T) {
	first, second := newCluster(t), newCluster(t)
	loads := 0
	s := newServers(func() ([]Server, error) {
		loads++
		return []Server{{"first", &rest.Config{Host: first.URL}}, {"second", &rest.Config{Host: second.URL}}}, nil
	})
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	door := newDoor(secret, s, nil)
	first.Close()
	ask(door, "GET", "/SECRET/server/version", "")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	door.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/SECRET/server/version", "").WithContext(gone))
	s.asOf = s.asOf.Add(-rereadInterval)
	ask(door, "GET", "/SECRET/server/version", "")
	if s.current != "second" || loads != 1 {
		t.Errorf("%s is asked next, and the kubeconfig was read %d times, want second, once", s.current, loads)
	}
	second.code = http.StatusUnauthorized
	for range 2 {
		ask(door, "GET", "/SECRET/server/version", "")
		s.asOf = s.asOf.Add(-rereadInterval)
	}
	if s.current != "second" || loads != 2 {
		t.Errorf("after it was read again: %s is asked next, read %d times, want second, twice", s.current, loads)
	}
}

// TestCredentialsThatEnded: the kubeconfig is read again after a 401, until it can be read, and what it has then is used.
func TestCredentialsThatEnded(t *testing.T) {
	c := newCluster(t)
	token, failure := "old", error(nil)
	s := newServers(func() ([]Server, error) {
		return []Server{{"s", &rest.Config{Host: c.URL, BearerToken: token}}}, failure
	})
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	door := newDoor(secret, s, nil)
	asked := func(want string) {
		t.Helper()
		s.asOf = s.asOf.Add(-rereadInterval)
		if ask(door, "GET", "/SECRET/server/version", ""); c.headers.Get("Authorization") != want {
			t.Errorf("the server was told %s, want %s", c.headers.Get("Authorization"), want)
		}
	}
	token = "new"
	asked("Bearer old") // nothing says that it has ended
	c.code = http.StatusUnauthorized
	asked("Bearer old")
	failure = errors.New("half written")
	asked("Bearer old")
	c.code, failure = http.StatusOK, nil
	asked("Bearer new")
}

// TestEndedCredentialsAreSaid to the page with one code, whatever it asks, and each time have the kubeconfig read again.
func TestEndedCredentialsAreSaid(t *testing.T) {
	refuses := newCluster(t)
	refuses.code = http.StatusUnauthorized
	expired := roundTripper(func(*http.Request) (*http.Response, error) { return nil, kubeconfig.ExpiredError{} })
	for name, config := range map[string]*rest.Config{
		"a token":       {Host: refuses.URL, BearerToken: "token"},
		"a certificate": {Host: refuses.URL, WrapTransport: func(http.RoundTripper) http.RoundTripper { return expired }},
	} {
		loads := 0
		s := newServers(func() ([]Server, error) { loads++; return []Server{{"s", config}}, nil })
		if err := s.read(); err != nil {
			t.Fatal(err)
		}
		door := newDoor(secret, s, nil)
		for i, r := range []*http.Request{
			newRequest("GET", "/SECRET/servers", ""), newRequest("GET", "/SECRET/server/version", ""), newRequest("POST", "/SECRET/lesson", "{}"),
		} {
			r.Header.Set("Origin", "http://127.0.0.1:8700")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.asOf = s.asOf.Add(-rereadInterval)
			if door.ServeHTTP(w, r); w.Code != http.StatusUnauthorized || loads != i+1 || !s.stale {
				t.Errorf("%s: %s: %d %s; the kubeconfig was read %d times, and is read again: %v", name, r.URL.Path, w.Code, w.Body, loads, s.stale)
			}
		}
	}
}

// TestARefusalHoldsNothing: a request whose body has no end is answered, and its connection ended, before it was let in.
func TestARefusalHoldsNothing(t *testing.T) {
	page := httptest.NewServer(doorTo(t, newCluster(t).URL))
	t.Cleanup(page.Close)
	for _, path := range []string{"/another/", "/SECRET/", "/SECRET/server/metrics"} {
		conn, err := net.Dial("tcp", page.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nx", path)
		answer, err := io.ReadAll(conn) // until the server ends the connection
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 40") {
			t.Errorf("%s: %q, %v", path, answer, err)
		}
	}
}

// TestThePageAsksWhatPasses: the questions that the page asks are those of server/admin, by their methods.
func TestThePageAsksWhatPasses(t *testing.T) {
	text, err := web.Files.ReadFile("api.js")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	for _, found := range regexp.MustCompile(`question\('([A-Z]\w+)'`).FindAllSubmatch(text, -1) {
		asked["/setpoint.v1.ClusterService/"+string(found[1])] = http.MethodPost
	}
	for _, found := range regexp.MustCompile(`getJSON\(.\$\{server\}(/setpoint\.v1\.ClusterService/\w+)[?\x60]`).FindAllSubmatch(text, -1) {
		asked[string(found[1])] = http.MethodGet
	}
	for path, method := range admin.Questions() {
		if asked[path] != method {
			t.Errorf("the page asks %s by %q, want %s", path, asked[path], method)
		}
		delete(asked, path)
	}
	for path := range asked {
		t.Errorf("the page asks %s, which does not pass", path)
	}
}
