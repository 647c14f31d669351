package apiserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// tlsServer serves over a socket as the product does, and issues identities.
type tlsServer struct {
	*Server
	ca      *trust.CA
	self    trust.Server
	address string
}

func newTLSServer(t *testing.T) *tlsServer {
	t.Helper()
	server, _ := newServer(t)
	server.config.Discovery = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &tlsServer{Server: server, address: listener.Addr().String()}
	s.self = trust.Server{Name: "server-1", Endpoint: s.address, Addresses: []string{"127.0.0.1"}}
	if s.ca, err = trust.NewCA(time.Now()); err != nil {
		t.Fatal(err)
	}
	identity, err := s.ca.IssueServer(s.self, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config, err := identity.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: server, TLSConfig: config}
	if err := http2.ConfigureServer(h, nil); err != nil {
		t.Fatal(err)
	}
	go h.ServeTLS(listener, "", "")
	t.Cleanup(func() { h.Close() })
	return s
}

func (s *tlsServer) admin(t *testing.T) *trust.Identity {
	t.Helper()
	identity, err := s.ca.IssueAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func (s *tlsServer) get(t *testing.T, config *tls.Config, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func clientConfig(t *testing.T, identity *trust.Identity, err error) *tls.Config {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	config, err := identity.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestOverTLS uses a kubeconfig as people do: certificates, HTTP/2, a watch beside writes.
func TestOverTLS(t *testing.T) {
	s := newTLSServer(t)
	text, err := trust.Kubeconfig(s.admin(t), []trust.Server{s.self})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	cms := client.CoreV1().ConfigMaps("default")
	w, err := cms.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"a", "b"} {
		if _, err := cms.Create(t.Context(), configMap(name, map[string]string{"k": "v"}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if e := <-w.ResultChan(); e.Object.(*corev1.ConfigMap).Name != name {
			t.Errorf("event = %+v", e)
		}
	}
	response, _ := s.get(t, clientConfig(t, s.admin(t), nil), cmPath)
	if response.ProtoMajor != 2 || response.Header.Get("Cache-Control") != "no-cache, private" || response.Header.Get("Audit-Id") == "" {
		t.Errorf("%s %v", response.Proto, response.Header)
	}
}

func TestWhoMayEnter(t *testing.T) {
	s := newTLSServer(t)
	nodeIdentity, err := s.ca.IssueNode("node-1", time.Now())
	node := clientConfig(t, nodeIdentity, err)
	nobody := &tls.Config{RootCAs: node.RootCAs}
	super := clientConfig(t, s.admin(t), nil)
	for name, c := range map[string]struct {
		who     *tls.Config
		path    string
		headers []string
		code    int
		text    string
	}{
		"nobody, health":      {nobody, "/readyz", nil, 200, "ok"},
		"nobody, discovery":   {nobody, "/apis", nil, 403, `forbidden: User \"system:anonymous\" cannot get path \"/apis\"`},
		"nobody, objects":     {nobody, cmPath, nil, 403, `User \"system:anonymous\" cannot list resource`},
		"nobody, with token":  {nobody, cmPath, []string{"Authorization", "Bearer x"}, 401, "Unauthorized"},
		"nobody as admin":     {nobody, cmPath, []string{"Impersonate-User", "admin", "Impersonate-Group", "system:masters"}, 403, "cannot impersonate"},
		"node, all sets":      {node, "/apis/apps/v1/replicasets", nil, 403, `replicasets.apps is forbidden: User \"system:node:node-1\" cannot list resource \"replicasets\" in API group \"apps\" at the cluster scope`},
		"node, deployments":   {node, depPath + "/d", nil, 403, `deployments.apps \"d\" is forbidden: User \"system:node:node-1\" cannot get resource \"deployments\" in API group \"apps\" in the namespace \"default\"`},
		"node as admin":       {node, cmPath, []string{"Impersonate-User", "admin"}, 403, "cannot impersonate"},
		"admin":               {super, cmPath, nil, 200, "ConfigMapList"},
		"admin as somebody":   {super, cmPath, []string{"Impersonate-User", "carol"}, 403, `User \"carol\" cannot list`},
		"admin, http, watch":  {super, "/api/v1/watch", nil, 400, "Status"},
		"somebody's own path": {super, "/nothing", nil, 200, "ok"},
	} {
		response, body := s.get(t, c.who, c.path, c.headers...)
		if response.StatusCode != c.code || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
	}
}

func TestPrivateHeadersDoNotEnter(t *testing.T) {
	server, _ := newServer(t)
	var seen http.Header
	server.config.Services = []Service{{Prefix: "/echo", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header })}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://in-process/echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("setpoint-fence", "9")
	r.Header.Set("Other", "x")
	response, err := server.Transport(Caller{User: admin}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if seen.Get("Setpoint-Fence") != "" || seen.Get("Other") != "x" {
		t.Errorf("headers = %v", seen)
	}
}

func TestPanicsStayWithTheirRequest(t *testing.T) {
	server, client := newServer(t)
	server.config.Services = []Service{
		{Prefix: "/panic", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })},
		{Prefix: "/abort", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		})},
	}
	got := call{path: "/panic"}.do(t, server)
	refusal{code: 500, reason: metav1.StatusReasonInternalError, messageHas: "its log says more"}.check(t, "panic", got)
	if strings.Contains(got.body, "broken") {
		t.Error("the client is shown the panic")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://in-process/abort", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Transport(Caller{User: admin}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("a broken answer looks whole")
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestRequestsEndInTime: a request whose write or read cannot finish gets 504, at
// the client's own deadline if that is earlier.
func TestRequestsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newSlowLog()
		server, _ := newServerWith(t, log)
		local := call{path: cmPath + "?resourceVersion=0"}
		local.do(t, server) // from the first of these on, the replica has caught up
		log.stuck.Store(true)
		for _, c := range []struct {
			call
			want time.Duration
		}{
			{call{method: "POST", path: cmPath, body: cmBody("a")}, 34 * time.Second}, // upstream's bound of writes
			{call{method: "POST", path: cmPath + "?timeout=5s", body: cmBody("a")}, 5 * time.Second},
			{call{path: cmPath}, requestTimeout},
			{call{path: cmPath + "/a?timeout=5s"}, 5 * time.Second},
		} {
			start := time.Now()
			got := c.do(t, server)
			if got.code != http.StatusGatewayTimeout || time.Since(start) != c.want {
				t.Errorf("%s %s: %d after %v, want 504 after %v: %s", c.method, c.path, got.code, time.Since(start), c.want, got.body)
			}
		}
		if got := local.do(t, server); got.code != 200 {
			t.Errorf("a local read: %d %s", got.code, got.body)
		}
	})
}

// TestOthersWaitForTheirTurn: who is not exempt shares a few seats; the administrator,
// health and the server's own loops do not wait.
func TestOthersWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newSlowLog()
		config := serverConfig(t, log)
		config.Fairness = flowcontrol.New(nil)
		config.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		})
		server, client := startServer(t, config)
		log.stuck.Store(true)
		outside := func(connection *tls.ConnectionState, path string) *discard {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if err != nil {
				t.Error(err)
				return nil
			}
			w := &discard{header: http.Header{}}
			r.TLS = connection
			server.ServeHTTP(w, r)
			return w
		}
		const seats = 600 // catch-all is alone until the other levels are known
		for range seats {
			go outside(nil, cmPath)
		}
		synctest.Wait()
		refused := outside(nil, cmPath)
		if refused.code != http.StatusTooManyRequests || refused.header.Get("Retry-After") == "" || refused.header["X-Kubernetes-Pf-Flowschema-Uid"] == nil {
			t.Errorf("one more: %d %v", refused.code, refused.header)
		}
		if w := outside(adminConnection(t), cmPath+"?resourceVersion=0"); w.code != http.StatusOK {
			t.Errorf("the administrator: %d", w.code)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); apierrors.IsTooManyRequests(err) {
			t.Error("the server's own loops are refused")
		}
		log.stuck.Store(false)
		time.Sleep(2 * requestTimeout)
		if w := outside(nil, cmPath); w.code != http.StatusOK {
			t.Errorf("afterwards: %d", w.code)
		}
	})
}
