package router

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// gateways are the kinds of the Gateway API of a site, and their objects.
func (s *site) gateways() *dynamicfake.FakeDynamicClient {
	lists := map[schema.GroupVersionResource]string{}
	list := &metav1.APIResourceList{GroupVersion: gatewayapi.GroupVersion.String()}
	for plural, kind := range map[string]string{
		"gatewayclasses": "GatewayClass", "gateways": "Gateway", "httproutes": "HTTPRoute", "grpcroutes": "GRPCRoute", "referencegrants": "ReferenceGrant",
		"tlsroutes": "TLSRoute", "listenersets": "ListenerSet", "backendtlspolicies": "BackendTLSPolicy",
	} {
		lists[gatewayapi.Resource(plural)] = kind + "List"
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural})
	}
	s.client.Resources = []*metav1.APIResourceList{list}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
}

// declare adds an object of the Gateway API; PLAIN and SECURE are the site's ports.
func (s *site) declare(plural, text string) {
	s.t.Helper()
	port := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	text = strings.NewReplacer("PLAIN", port(s.plain), "SECURE", port(s.secure)).Replace(text)
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		s.t.Fatal(err)
	}
	o.SetAPIVersion(gatewayapi.GroupVersion.String())
	if _, err := s.router.Gateways.Resource(gatewayapi.Resource(plural)).Namespace(o.GetNamespace()).Create(s.t.Context(), o, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// routed waits until the plain port serves something of a Gateway at a host's path.
func (s *site) routed(host, path string) {
	s.t.Helper()
	again, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer again.Stop()
	for {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+host+path, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, port := range *s.router.ports.Load() {
			if found := port.Find(host, req); found != nil && !port.Secure && (found.Backend == nil || len(found.Backend.Endpoints) > 0) {
				return
			}
		}
		select {
		case <-again.C:
		case <-limit:
			s.t.Fatalf("no Gateway serves %s%s", host, path)
		}
	}
}

const plainGateway = `
kind: Gateway
metadata: {name: g, namespace: "n"}
spec: {gatewayClassName: setpoint, listeners: [{name: http, port: PLAIN, protocol: HTTP}]}`

func newGatewaySite(t *testing.T) *site {
	s := newSite(t, service("web"), slice("web", "10.0.0.1"), service("copy"), slice("copy", "10.0.0.2"))
	s.declare("gatewayclasses", "kind: GatewayClass\nmetadata: {name: setpoint}\nspec: {controllerName: "+gatewayapi.Controller+"}")
	return s
}

func TestFiltersOfGateways(t *testing.T) {
	s := newGatewaySite(t)
	copies := make(chan string, 1)
	told := func(req *http.Request) string {
		body, _ := io.ReadAll(req.Body)
		return fmt.Sprint(req.Host, " ", req.URL, " ", req.Header.Get("A"), req.Header.Values("B"), req.Header.Get("C"), " ", string(body))
	}
	s.pod("10.0.0.1", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Away", "1")
		w.Header().Set("Access-Control-Allow-Origin", "https://evil.example.com")
		fmt.Fprint(w, told(req))
	})
	s.pod("10.0.0.2", func(_ http.ResponseWriter, req *http.Request) { copies <- told(req) })
	s.declare("gateways", plainGateway)
	s.declare("httproutes", `
kind: HTTPRoute
metadata: {name: r, namespace: "n"}
spec:
  parentRefs: [{name: g}]
  rules:
  - matches: [{path: {value: /app}}]
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: new}], add: [{name: b, value: two}], remove: [c]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: d, value: x}], remove: [away]}}
    - {type: URLRewrite, urlRewrite: {hostname: inside.example.com, path: {type: ReplacePrefixMatch, replacePrefixMatch: /v1}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}
    - {type: CORS, cors: {allowOrigins: ["https://*.example.org"], allowMethods: ["*"], allowHeaders: [x], exposeHeaders: [shown], maxAge: 60, allowCredentials: true}}
    backendRefs: [{name: web, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: b, value: three}]}}]}]
  - {matches: [{path: {value: /go}}], filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]}
`)
	s.routed("a.com", "/app")
	answer, body := s.ask("POST", "a.com", "/app/x?q=1", "hello", "A", "old", "B", "one", "C", "gone", "Origin", "https://a.example.org")
	const want = "inside.example.com /v1/x?q=1 new[one two three] hello"
	if body != want {
		t.Errorf("the backend got %q, want %q", body, want)
	}
	if got := <-copies; got != want {
		t.Errorf("the copy is %q, want %q", got, want)
	}
	h := answer.Header
	if h.Get("D") != "x" || h.Get("Away") != "" || h.Get("Access-Control-Allow-Origin") != "https://a.example.org" || h.Get("Access-Control-Expose-Headers") != "shown" {
		t.Errorf("%v", h)
	}
	answer, body = s.ask("OPTIONS", "a.com", "/app", "", "Origin", "https://a.example.org", "Access-Control-Request-Method", "PUT")
	if h = answer.Header; answer.StatusCode != 204 || body != "" || h.Get("Access-Control-Allow-Methods") != "PUT" || h.Get("Access-Control-Max-Age") != "60" {
		t.Errorf("%d %v", answer.StatusCode, h)
	}
	if answer, _ = s.ask("OPTIONS", "a.com", "/app", "", "Origin", "https://evil.example.com", "Access-Control-Request-Method", "PUT"); answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", answer.Header)
	}
	if answer, _ = s.ask("GET", "a.com", "/go/x?q", ""); answer.StatusCode != 301 || answer.Header.Get("Location") != "https://a.com/go/x?q" {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	if answer, _ = s.ask("GET", "a.com", "/other", ""); answer.StatusCode != 404 {
		t.Errorf("%d", answer.StatusCode)
	}
}

func TestTimeoutsOfRoutes(t *testing.T) {
	s := newGatewaySite(t)
	s.pod("10.0.0.1", func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	s.declare("gateways", plainGateway)
	s.declare("httproutes", `
kind: HTTPRoute
metadata: {name: r, namespace: "n"}
spec:
  parentRefs: [{name: g}]
  rules:
  - {matches: [{path: {value: /whole}}], timeouts: {request: 50ms}, backendRefs: [{name: web, port: 80}]}
  - {matches: [{path: {value: /one}}], timeouts: {backendRequest: 50ms}, backendRefs: [{name: web, port: 80}]}
`)
	for _, path := range []string{"/whole", "/one"} {
		s.routed("a.com", path)
		if answer, _ := s.ask("GET", "a.com", path, ""); answer.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}

// TestPortsOfGateways: a port is opened with the Gateway and closed with it, and Ingresses are served beside Gateways.
func TestPortsOfGateways(t *testing.T) {
	s := newGatewaySite(t)
	s.add(ingress("web"))
	s.pod("10.0.0.1", func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.Header.Get("X-Forwarded-Port")) })
	free := listen(t)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	s.declare("gateways", strings.ReplaceAll(plainGateway, "PLAIN", port))
	s.declare("httproutes", "kind: HTTPRoute\nmetadata: {name: r, namespace: \"n\"}\nspec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: web, port: 80}]}]}")
	s.routed("a.com", "/")
	s.serves("web", 1)
	if answer, _ := s.ask("GET", "a.com", "/", ""); answer.StatusCode != 404 {
		t.Errorf("a Gateway is served at another port: %d", answer.StatusCode)
	}
	if answer, _ := s.ask("GET", "web", "/", ""); answer.StatusCode != 200 {
		t.Errorf("the Ingress: %d", answer.StatusCode)
	}
	s.plain = "127.0.0.1:" + port
	s.reached(true)
	if answer, body := s.ask("GET", "a.com", "/", ""); answer.StatusCode != 200 || body != port {
		t.Errorf("%d %q", answer.StatusCode, body)
	}
	if err := s.router.Gateways.Resource(gatewayapi.Resource("gateways")).Namespace("n").Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.reached(false)
}

// reached waits until somebody listens at the plain address, or nobody.
func (s *site) reached(wanted bool) {
	s.t.Helper()
	again, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer again.Stop()
	for {
		conn, err := net.Dial("tcp", s.plain)
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) == wanted {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			s.t.Fatalf("listening: %v, want %t", err, wanted)
		}
	}
}

// TestWhoAsksWithoutAName gets the certificate of a listener for all names, or of an Ingress without a host if no listener is for that.
func TestWhoAsksWithoutAName(t *testing.T) {
	all, one, mine := certificate(t, "all", "1"), certificate(t, "one", "1"), certificate(t, "mine", "1")
	plain := ingress("web")
	plain.Spec.Rules[0].Host = ""
	plain.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "all"}}
	s := newSite(t, plain, service("web"), slice("web", "10.0.0.1"), all, one, mine)
	s.declare("gatewayclasses", "kind: GatewayClass\nmetadata: {name: setpoint}\nspec: {controllerName: "+gatewayapi.Controller+"}")
	s.known("the certificate of the Ingress", func(t *table.Table) bool { return t.Certificate("") != nil })
	expect := func(what string, want *corev1.Secret) {
		t.Helper()
		again, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
		defer again.Stop()
		for s.shown("one.com") != raw(one) || s.shown("") != raw(want) {
			select {
			case <-again.C:
			case <-limit:
				t.Fatalf("%s: another certificate is shown", what)
			}
		}
	}
	listener := func(gateway, host, secret string) {
		s.declare("gateways", "kind: Gateway\nmetadata: {name: "+gateway+", namespace: \"n\"}\nspec: {gatewayClassName: setpoint, listeners: ["+
			"{name: l, port: SECURE, protocol: HTTPS, "+host+"tls: {certificateRefs: [{name: "+secret+"}]}}]}")
	}
	listener("one", "hostname: one.com, ", "one")
	expect("only a listener with a name", all)
	listener("any", "", "mine")
	expect("a listener for all names", mine)
}

// TestCertificatesOfGateways: by server name, and a connection for one listener does not reach another.
func TestCertificatesOfGateways(t *testing.T) {
	s := newGatewaySite(t)
	s.pod("10.0.0.1", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "web") })
	one := certificate(t, "one", "1")
	s.add(one)
	s.declare("gateways", `
kind: Gateway
metadata: {name: g, namespace: "n"}
spec:
  gatewayClassName: setpoint
  listeners:
  - {name: one, port: SECURE, protocol: HTTPS, hostname: one.com, tls: {certificateRefs: [{name: one}]}}
  - {name: any, port: SECURE, protocol: HTTPS, tls: {certificateRefs: [{name: one}]}}
  - {name: http, port: PLAIN, protocol: HTTP}`)
	s.declare("httproutes", "kind: HTTPRoute\nmetadata: {name: r, namespace: \"n\"}\nspec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: web, port: 80}]}]}")
	s.routed("one.com", "/")
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: "one.com", InsecureSkipVerify: true}}
	ask := func(host string) (code int, right bool) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.secure+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		answer, _ := s.do(transport, req)
		return answer.StatusCode, string(answer.TLS.PeerCertificates[0].Raw) == raw(one)
	}
	limit := time.After(20 * time.Second)
	for code, right := ask("one.com"); code != 200 || !right; code, right = ask("one.com") {
		select {
		case <-limit:
			t.Fatalf("%d, with its certificate: %t", code, right)
		default:
		}
	}
	if code, _ := ask("two.com"); code != http.StatusMisdirectedRequest {
		t.Errorf("a connection for one.com reached two.com: %d", code)
	}
}
