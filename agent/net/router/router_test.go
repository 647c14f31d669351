package router

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// site is a router over a fake cluster, with its ports on loopback, and backends at addresses of pods.
type site struct {
	t      *testing.T
	client *fake.Clientset
	router *router
	// plain and secure are host:port of the listeners.
	plain, secure string

	mu       sync.Mutex
	backends map[string]string // address of a pod to where its program listens
}

func newSite(t *testing.T, objects ...any) *site {
	s := &site{t: t, client: fake.NewSimpleClientset(), backends: map[string]string{}}
	s.add(&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "setpoint"}, Spec: networkingv1.IngressClassSpec{Controller: table.Controller}})
	for _, o := range objects {
		s.add(o)
	}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	listeners := [2]net.Listener{listen(t), listen(t)}
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	s.plain, s.secure = listeners[0].Addr().String(), listeners[1].Addr().String()
	ports := Ports{HTTP: port(listeners[0]), HTTPS: port(listeners[1])}
	config := Config{Ports: ports, Informers: factory, Client: s.client, Gateways: s.gateways(), Metrics: NewMetrics(), Reserved: reserved.New(), Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))}
	r, err := newRouter(config, s.dial)
	if err != nil {
		t.Fatal(err)
	}
	s.router = r
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	var children sync.WaitGroup
	factory.WaitForCacheSync(ctx.Done())
	r.build(ctx)
	children.Go(func() { r.follow(ctx, func(context.Context, bool) {}) })
	children.Go(func() { r.objects.Run(ctx) })
	children.Go(func() { r.serve(ctx, listeners[0], ports.HTTP, false) })
	children.Go(func() { r.serve(ctx, listeners[1], ports.HTTPS, true) })
	t.Cleanup(func() { cancel(); children.Wait(); factory.Shutdown() })
	return s
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *site) add(o any) {
	s.t.Helper()
	var err error
	switch o := o.(type) {
	case *networkingv1.IngressClass:
		_, err = s.client.NetworkingV1().IngressClasses().Create(s.t.Context(), o, metav1.CreateOptions{})
	case *networkingv1.Ingress:
		_, err = s.client.NetworkingV1().Ingresses("n").Create(s.t.Context(), o, metav1.CreateOptions{})
	case *corev1.Service:
		_, err = s.client.CoreV1().Services("n").Create(s.t.Context(), o, metav1.CreateOptions{})
	case *corev1.Secret:
		_, err = s.client.CoreV1().Secrets("n").Create(s.t.Context(), o, metav1.CreateOptions{})
	case *discoveryv1.EndpointSlice:
		_, err = s.client.DiscoveryV1().EndpointSlices("n").Create(s.t.Context(), o, metav1.CreateOptions{})
	default:
		s.t.Fatalf("no kind is made from %T", o)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// dial leads addresses of pods to the test's programs; one without a program refuses.
func (s *site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	to, ok := s.backends[address]
	s.mu.Unlock()
	if !ok {
		return nil, &dialError{fmt.Errorf("%s refuses", address)}
	}
	return dial(ctx, network, to)
}

// pod runs a program at a pod's address, on port 8080.
func (s *site) pod(address string, program http.HandlerFunc) {
	server := httptest.NewUnstartedServer(program)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	s.t.Cleanup(server.Close)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends[address+":8080"] = server.Listener.Addr().String()
}

// known waits until the router's table has what is asked for.
func (s *site) known(what string, is func(*table.Table) bool) {
	s.t.Helper()
	again, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer again.Stop()
	for !is(s.router.table.Load()) {
		select {
		case <-again.C:
		case <-limit:
			s.t.Fatalf("the router does not know %s", what)
		}
	}
}

func (s *site) serves(host string, endpoints int) {
	s.t.Helper()
	s.known(fmt.Sprintf("%d endpoints of %s", endpoints, host), func(t *table.Table) bool {
		found := t.Find(host, "/")
		return found != nil && len(found.Backend.Endpoints) == endpoints
	})
}

// ask sends a request to the plain port, and follows no redirect.
func (s *site) ask(method, host, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.plain+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return s.do(&http.Transport{DisableKeepAlives: true}, req)
}

func (s *site) do(t *http.Transport, req *http.Request) (*http.Response, string) {
	s.t.Helper()
	answer, err := t.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func slice(name string, addresses ...string) *discoveryv1.EndpointSlice {
	number, port := int32(8080), ""
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		Ports:      []discoveryv1.EndpointPort{{Port: &number, Name: &port}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

// ingress serves all paths of a host, which is also the Service's name.
func ingress(host string, annotations ...string) *networkingv1.Ingress {
	class, kind := "setpoint", networkingv1.PathTypeImplementationSpecific
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: host, Annotations: map[string]string{}}}
	path := "/"
	for n := 0; n < len(annotations); n += 2 {
		if annotations[n] == "path" {
			path = annotations[n+1]
			continue
		}
		i.Annotations["nginx.ingress.kubernetes.io/"+annotations[n]] = annotations[n+1]
	}
	i.Spec = networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{
		Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
			Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: host, Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
		}}}},
	}}}
	return i
}

func secured(i *networkingv1.Ingress, secret string) *networkingv1.Ingress {
	i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{i.Name}, SecretName: secret}}
	return i
}

// echo answers with what a backend sees.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s for=%q proto=%q real=%q fwd=%q body=%q %v", r.Method, r.Host, r.RequestURI, r.Header["X-Forwarded-For"],
		r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Real-Ip"), r.Header.Get("Forwarded"), body, err)
}

func TestARequestAsTheBackendSeesIt(t *testing.T) {
	s := newSite(t, ingress("a.com"), service("a.com"), slice("a.com", "10.0.0.1"),
		ingress("b.com", "path", "/app(/|$)(.*)", "rewrite-target", "/$2"), service("b.com"), slice("b.com", "10.0.0.1"))
	s.pod("10.0.0.1", echo)
	s.serves("a.com", 1)
	for _, test := range []struct{ host, path, want string }{
		{"a.com", "/x%2Fy?q=1;2", `POST a.com /x%2Fy?q=1;2 for=["127.0.0.1"] proto="http" real="127.0.0.1" fwd="" body="hello" <nil>`},
		{"a.com:8080", "/a/../b//c", `POST a.com:8080 /b/c for=["127.0.0.1"] proto="http" real="127.0.0.1" fwd="" body="hello" <nil>`},
		{"b.com", "/app/x?y", `POST b.com /x?y for=["127.0.0.1"] proto="http" real="127.0.0.1" fwd="" body="hello" <nil>`},
	} {
		_, got := s.ask("POST", test.host, test.path, "hello", "X-Forwarded-For", "6.6.6.6", "X-Real-Ip", "6.6.6.6", "Forwarded", "for=6.6.6.6", "X-Forwarded-Proto", "https")
		if got != test.want {
			t.Errorf("%s%s:\n got %s\nwant %s", test.host, test.path, got, test.want)
		}
	}
}

func TestAnswersOfItsOwn(t *testing.T) {
	s := newSite(t, ingress("a.com"), service("a.com"), slice("a.com", "10.0.0.1"), ingress("none.com"), service("none.com"),
		ingress("closed.com", "whitelist-source-range", "192.0.2.0/24"), service("closed.com"), slice("closed.com", "10.0.0.1"),
		ingress("small.com", "proxy-body-size", "4"), service("small.com"), slice("small.com", "10.0.0.1"),
		ingress("moved.com", "permanent-redirect", "https://new.com/"), service("moved.com"),
		ingress("dead.com"), service("dead.com"), slice("dead.com", "10.0.0.66"),
		ingress("slow.com", "proxy-read-timeout", "1"), service("slow.com"), slice("slow.com", "10.0.0.2"),
		secured(ingress("safe.com"), "cert"), service("safe.com"), slice("safe.com", "10.0.0.1"))
	s.pod("10.0.0.1", echo)
	s.pod("10.0.0.2", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the server sees the client go
		<-r.Context().Done()
	})
	s.serves("slow.com", 1)
	s.serves("safe.com", 1)
	for host, want := range map[string]int{
		"a.com": 200, "b.com": 404, "none.com": 503, "closed.com": 403, "small.com": 413, "moved.com": 301, "dead.com": 502, "slow.com": 504, "safe.com": 308,
	} {
		answer, _ := s.ask("POST", host, "/x?y=1", "hello")
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, answer.StatusCode, want)
		}
		if to := answer.Header.Get("Location"); want == 308 && to != fmt.Sprintf("https://safe.com:%d/x?y=1", s.router.Ports.HTTPS) {
			t.Errorf("%s is sent to %s", host, to)
		}
	}
}

// TestABodyThatGrowsTooLarge: a body without a length is cut off where the limit is.
func TestABodyThatGrowsTooLarge(t *testing.T) {
	s := newSite(t, ingress("small.com", "proxy-body-size", "4"), service("small.com"), slice("small.com", "10.0.0.1"))
	var got atomic.Int64
	s.pod("10.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Store(n)
	})
	s.serves("small.com", 1)
	req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.plain, io.MultiReader(strings.NewReader("abc"), strings.NewReader("defgh")))
	req.Host = "small.com"
	if answer, _ := s.do(&http.Transport{}, req); answer.StatusCode != http.StatusRequestEntityTooLarge || got.Load() > 4 {
		t.Errorf("%d; the backend got %d bytes", answer.StatusCode, got.Load())
	}
}

// TestAnotherEndpoint: what no endpoint has seen is tried elsewhere, with its body; what one has seen is not sent twice.
func TestAnotherEndpoint(t *testing.T) {
	s := newSite(t, ingress("a.com"), service("a.com"), slice("a.com", "10.0.0.1", "10.0.0.2", "10.0.0.3"),
		ingress("once.com"), service("once.com"), slice("once.com", "10.0.0.4", "10.0.0.5"))
	s.pod("10.0.0.2", echo)
	var seen atomic.Int32
	hangUp := func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	}
	s.pod("10.0.0.4", hangUp)
	s.pod("10.0.0.5", hangUp)
	s.serves("a.com", 3)
	s.serves("once.com", 2)
	for range 30 {
		if answer, text := s.ask("POST", "a.com", "/", "hello"); answer.StatusCode != 200 || !strings.Contains(text, `body="hello"`) {
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
	}
	if answer, _ := s.ask("POST", "once.com", "/", "pay"); answer.StatusCode != http.StatusBadGateway || seen.Load() != 1 {
		t.Errorf("%d; backends saw it %d times", answer.StatusCode, seen.Load())
	}
}

// keyPair is a certificate for a host.
func keyPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	c, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func certificate(t *testing.T, name, version string) *corev1.Secret {
	cert, key := keyPair(t)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version},
		Data:       map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key},
	}
}

// shown is the certificate that a client for the host sees.
func (s *site) shown(host string) string {
	s.t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(s.t.Context(), "tcp", s.secure)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	return string(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw)
}

func raw(secret *corev1.Secret) string {
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	return string(block.Bytes)
}

// TestCertificates: by server name, also after the Secret has changed, and never one host's for another's requests.
func TestCertificates(t *testing.T) {
	one, two := certificate(t, "one", "1"), certificate(t, "two", "1")
	s := newSite(t, secured(ingress("a.com"), "one"), service("a.com"), slice("a.com", "10.0.0.1"), one,
		secured(ingress("b.com"), "two"), service("b.com"), slice("b.com", "10.0.0.1"), two)
	s.pod("10.0.0.1", echo)
	s.known("both certificates", func(t *table.Table) bool { return t.Certificate("a.com") != nil && t.Certificate("b.com") != nil })
	if s.shown("a.com") != raw(one) || s.shown("b.com") != raw(two) {
		t.Error("another certificate was shown")
	}
	if s.shown("c.com") != string(s.router.unknown.Certificate[0]) {
		t.Error("an unknown host was shown another's certificate")
	}
	for host, want := range map[string]int{"a.com": 200, "b.com": 421} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{ServerName: "a.com", InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.secure, nil)
		req.Host = host
		answer, text := s.do(transport, req)
		if answer.StatusCode != want || answer.ProtoMajor != 2 {
			t.Errorf("%s on a connection for a.com: %s %s", host, answer.Proto, answer.Status)
		}
		if want == 200 && !strings.Contains(text, `proto="https"`) {
			t.Errorf("the backend sees %s", text)
		}
		transport.CloseIdleConnections()
	}
	renewed := certificate(t, "one", "2")
	if _, err := s.client.CoreV1().Secrets("n").Update(t.Context(), renewed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.known("the new certificate", func(t *table.Table) bool {
		c := t.Certificate("a.com")
		return c != nil && string(c.Certificate[0]) == raw(renewed)
	})
	if s.shown("a.com") != raw(renewed) {
		t.Error("the old certificate is still shown")
	}
}

// TestUpgrade: a WebSocket's bytes go both ways.
func TestUpgrade(t *testing.T) {
	s := newSite(t, ingress("a.com"), service("a.com"), slice("a.com", "10.0.0.1"))
	s.pod("10.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		both.Flush()
		line, _ := both.ReadString('\n')
		fmt.Fprint(both, "you said "+line)
		both.Flush()
	})
	s.serves("a.com", 1)
	conn, err := net.Dial("tcp", s.plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != 101 {
		t.Fatalf("%v %v", answer, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := reader.ReadString('\n'); line != "you said hello\n" {
		t.Errorf("%q %v", line, err)
	}
}

// TestHTTP2Backend: what gRPC needs: HTTP/2 to the backend, and trailers.
func TestHTTP2Backend(t *testing.T) {
	s := newSite(t, ingress("grpc.com", "backend-protocol", "GRPC"), service("grpc.com"), slice("grpc.com", "10.0.0.1"))
	s.pod("10.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		fmt.Fprint(w, r.Proto)
		w.Header().Set("Grpc-Status", "0")
	})
	s.serves("grpc.com", 1)
	client := &http.Transport{Protocols: new(http.Protocols)}
	client.Protocols.SetUnencryptedHTTP2(true)
	defer client.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.plain+"/p.S/M", strings.NewReader("x"))
	req.Host = "grpc.com"
	answer, text := s.do(client, req)
	if text != "HTTP/2.0" || answer.ProtoMajor != 2 || answer.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("the backend saw %q; %s, trailer %v", text, answer.Proto, answer.Trailer)
	}
}

// TestRolloutsLoseNothing: while endpoints come and go, each before it ends out of the slice, no request fails, and one under way ends well.
func TestRolloutsLoseNothing(t *testing.T) {
	s := newSite(t, ingress("a.com"), service("a.com"), slice("a.com", "10.0.0.1"))
	begun, release, slow := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	s.pod("10.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-release
		}
		fmt.Fprint(w, "one")
	})
	s.serves("a.com", 1)
	go func() {
		req, _ := http.NewRequest("GET", "http://"+s.plain+"/slow", nil)
		req.Host = "a.com"
		answer, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			slow <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		slow <- string(text)
	}()
	<-begun // before its endpoint goes
	stop, failed, asked := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked.Add(1)
				if answer, _ := s.ask("GET", "a.com", "/", ""); answer.StatusCode != 200 {
					failed.Add(1)
				}
			}
		})
	}
	for version := 2; version < 12; version++ {
		address := fmt.Sprintf("10.0.0.%d", version)
		s.pod(address, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, address) })
		if _, err := s.client.DiscoveryV1().EndpointSlices("n").Update(t.Context(), slice("a.com", address), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.known(address, func(t *table.Table) bool { return t.Find("a.com", "/").Backend.Endpoints[0].Addr().String() == address })
	}
	close(stop)
	clients.Wait()
	close(release)
	if got := <-slow; got != "one" || failed.Load() > 0 || asked.Load() < 10 {
		t.Errorf("the slow request got %q; %d of %d others failed", got, failed.Load(), asked.Load())
	}
}

// TestSecretsAreLetGo: what no Ingress names any more is not followed.
func TestSecretsAreLetGo(t *testing.T) {
	s := newSite(t, secured(ingress("a.com"), "one"), service("a.com"), certificate(t, "one", "1"))
	s.known("the certificate", func(t *table.Table) bool { return t.Certificate("a.com") != nil })
	if err := s.client.NetworkingV1().Ingresses("n").Delete(t.Context(), "a.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.known("that the Ingress is gone", func(t *table.Table) bool { return t.Certificate("a.com") == nil })
	if n := s.router.secrets.Followed(); n != 0 {
		t.Errorf("%d are followed", n)
	}
}
