package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// backend answers with what it was asked, and is found under any address.
type backend struct{ *httptest.Server }

func newBackend(t *testing.T) backend {
	b := backend{httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<a href="/next">next</a>`)
		default:
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %s|%s|%s", r.Method, r.Header.Get("X-Dialed"), r.URL.RequestURI(), r.Header.Get("Authorization"), body)
		}
	}))}
	t.Cleanup(b.Close)
	return b
}

// RoundTrip implements http.RoundTripper: it tells the backend whom it answers for.
func (b backend) RoundTrip(r *http.Request) (*http.Response, error) {
	there := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, b.Listener.Addr().String())
	}}
	out := r.Clone(r.Context())
	out.Header.Set("X-Dialed", r.URL.Host)
	return there.RoundTrip(out)
}

// Agent implements rest.Kubelets.
func (b backend) Agent(node *corev1.Node) (*url.URL, http.RoundTripper, error) {
	if node.Name == "lost" {
		return nil, nil, errors.New("no address")
	}
	return &url.URL{Scheme: "http", Host: node.Status.Addresses[0].Address + ":10250"}, b, nil
}

func newProxyingServer(t *testing.T) *Server {
	b := newBackend(t)
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Kubelets, config.Pods = b, b
	server, client := startServer(t, config)
	for name, address := range map[string]string{"n": "10.0.0.9", "home": "127.0.0.1", "lost": "10.0.0.8"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}}}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, ip := range map[string]string{"p": "10.42.0.5", "inward": "127.0.0.1", "new": ""} {
		body := strings.Replace(podBody(name), `"image":"i"`, `"image":"i","ports":[{"containerPort":8080}]`, 1)
		mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: body})
		if ip != "" {
			mustDo[corev1.Pod](t, server, call{method: "PATCH", path: podPath + "/" + name + "/status", contentType: patchTypeOf["merge"],
				body: fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%q}]}}`, ip, ip)})
		}
	}
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: `{"metadata":{"name":"s"},"spec":{"ports":[{"name":"web","port":80},{"name":"tls","port":443}]}}`})
	const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	mustDo[discoveryv1.EndpointSlice](t, server, call{method: "POST", path: slices, body: `{"metadata":{"name":"s","labels":{"kubernetes.io/service-name":"s"}},"addressType":"IPv4",
		"ports":[{"name":"web","port":8080}],"endpoints":[
			{"addresses":["10.42.0.5"],"targetRef":{"kind":"Pod","namespace":"default","name":"p"}},
			{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","namespace":"default","name":"p"}},
			{"addresses":["10.42.0.5"],"conditions":{"ready":false},"targetRef":{"kind":"Pod","namespace":"default","name":"new"}},
			{"addresses":["10.0.0.2"]}]}`})
	return server
}

func TestProxies(t *testing.T) {
	server := newProxyingServer(t)
	const nodePath = "/api/v1/nodes"
	for _, c := range []struct{ method, path, want string }{
		{"GET", podPath + "/p/proxy/a/b?q=1", "GET 10.42.0.5:8080 /a/b?q=1||"},
		{"GET", podPath + "/p:81/proxy/", "GET 10.42.0.5:81 /||"},
		{"POST", podPath + "/http:p:81/proxy/x", "POST 10.42.0.5:81 /x||body"},
		{"PUT", podPath + "/p/proxy/x/", "PUT 10.42.0.5:8080 /x/||body"},
		{"PATCH", podPath + "/p/proxy/x", "PATCH 10.42.0.5:8080 /x||body"},
		{"DELETE", podPath + "/p/proxy/x", "DELETE 10.42.0.5:8080 /x||body"},
		{"OPTIONS", podPath + "/p/proxy/x", "OPTIONS 10.42.0.5:8080 /x||body"},
		{"GET", svcPath + "/s:web/proxy/x", "GET 10.42.0.5:8080 /x||"},
		{"GET", svcPath + "/s:80/proxy/x", "GET 10.42.0.5:8080 /x||"},
		{"POST", svcPath + "/http:s:web/proxy/x/y", "POST 10.42.0.5:8080 /x/y||body"},
		{"GET", nodePath + "/n/proxy/healthz", "GET 10.0.0.9:10250 /healthz||"},
		{"GET", nodePath + "/n:10250/proxy/healthz", "GET 10.0.0.9:10250 /healthz||"},
		{"GET", nodePath + "/n:99/proxy/healthz", "GET 10.0.0.9:99 /healthz||"},
		{"GET", nodePath + "/home/proxy/healthz", "GET 127.0.0.1:10250 /healthz||"},
	} {
		request := call{method: c.method, path: c.path, body: "body", contentType: "text/plain"}
		if c.method == "GET" {
			request.body = ""
		}
		if got := request.do(t, server); got.code != http.StatusTeapot || got.body != c.want {
			t.Errorf("%s %s: %d %q, want %q", c.method, c.path, got.code, got.body, c.want)
		}
	}
	moved := call{path: podPath + "/p/proxy/moved"}.do(t, server)
	if where := moved.header.Get("Location"); moved.code != http.StatusFound || where != "https://in-process"+podPath+"/p/proxy/there" {
		t.Errorf("redirect: %d %s", moved.code, where)
	}
	if page := (call{path: podPath + "/p/proxy/page"}).do(t, server); !strings.Contains(page.body, `href="https://in-process`+podPath+`/p/proxy/next"`) {
		t.Errorf("page: %s", page.body)
	}
}

func TestProxiesRefuse(t *testing.T) {
	server := newProxyingServer(t)
	for path, want := range map[string]refusal{
		podPath + "/q/proxy/":            {code: 404, reason: metav1.StatusReasonNotFound, name: "q", kind: "pods"},
		podPath + "/a:b:c:d/proxy/":      {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: `invalid pod request "a:b:c:d"`},
		podPath + "/inward/proxy/":       {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "address not allowed"},
		podPath + "/new/proxy/":          {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "address not allowed"},
		podPath + "/p/proxy/?dryRun=All": {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "dryRun is not supported"},
		svcPath + "/s:81/proxy/":         {code: 503, reason: metav1.StatusReasonServiceUnavailable, messageHas: `no service port 81 found for service "s"`},
		svcPath + "/s:tls/proxy/":        {code: 503, reason: metav1.StatusReasonServiceUnavailable, messageHas: `no endpoints available for service "s"`},
		svcPath + "/none/proxy/":         {code: 503, reason: metav1.StatusReasonServiceUnavailable, messageHas: `no endpoints available for service "none"`},
		"/api/v1/nodes/x/proxy/":         {code: 404, reason: metav1.StatusReasonNotFound, name: "x", kind: "nodes"},
		"/api/v1/nodes/lost/proxy/":      {code: 503, reason: metav1.StatusReasonServiceUnavailable, messageHas: "node lost cannot be reached"},
		"/api/v1/nodes/home:99/proxy/":   {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "address not allowed"},
	} {
		want.check(t, path, call{path: path}.do(t, server))
	}
}

// readers may read everything, and nothing else.
type readers struct{ authorizer.Authorizer }

func (r readers) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "reader" {
		if a.GetVerb() == "get" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, "readers read", nil
	}
	return r.Authorizer.Authorize(ctx, a)
}

// TestReadersOpenNoStreams: a WebSocket begins with a GET. It takes the right to create all the same.
func TestReadersOpenNoStreams(t *testing.T) {
	b := newBackend(t)
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Kubelets, config.Pods, config.Authorizer = b, b, readers{config.Authorizer}
	server, client := startServer(t, config)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.9"}}}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	reader := &user.DefaultInfo{Name: "reader"}
	for path, upgrade := range map[string]bool{
		podPath + "/p/exec?command=sh&stdout=1": false, podPath + "/p/attach?stdout=1": false, podPath + "/p/portforward?ports=80": false,
		"/api/v1/nodes/n/proxy/exec/default/p/c": true,
	} {
		got := call{path: path, as: reader, upgrade: upgrade}.do(t, server)
		refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: "readers read"}.check(t, path, got)
	}
	if got := (call{path: "/api/v1/nodes/n/proxy/healthz", as: reader}).do(t, server); got.code != http.StatusTeapot {
		t.Errorf("reading: %d %s", got.code, got.body)
	}
}
