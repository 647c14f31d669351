package router

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const streamGateway = `
kind: Gateway
metadata: {name: g, namespace: "n"}
spec:
  gatewayClassName: setpoint
  listeners:
  - {name: passed, port: SECURE, protocol: TLS, hostname: "*.passed.com", tls: {mode: Passthrough}}
  - {name: ended, port: SECURE, protocol: TLS, hostname: ended.com, tls: {certificateRefs: [{name: one}]}}
  - {name: requests, port: SECURE, protocol: HTTPS, tls: {certificateRefs: [{name: one}]}}`

// newStreamSite passes a.passed.com to a pod with TLS, and ended.com to one that echoes.
func newStreamSite(t *testing.T) (s *site, secure *httptest.Server) {
	s = newGatewaySite(t)
	secure = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		fmt.Fprint(w, n, " bytes for ", req.TLS.ServerName)
	}))
	t.Cleanup(secure.Close)
	s.backends["10.0.0.1:8080"] = secure.Listener.Addr().String()
	s.echo("10.0.0.2")
	s.add(certificate(t, "one", "1"))
	s.declare("gateways", streamGateway)
	for host, to := range map[string]string{"a.passed.com": "web", "ended.com": "copy"} {
		s.declare("tlsroutes", "kind: TLSRoute\nmetadata: {name: "+to+", namespace: \"n\"}\nspec: {parentRefs: [{name: g}], hostnames: ["+host+
			"], rules: [{backendRefs: [{name: "+to+", port: 80}]}]}")
	}
	s.until("streams", func() bool {
		for _, port := range *s.router.ports.Load() {
			_, one, _, _ := port.Stream("a.passed.com")
			_, two, _, _ := port.Stream("ended.com")
			return one != nil && two != nil && len(one.Backend.Endpoints) > 0
		}
		return false
	})
	return s, secure
}

// until waits for something that the router is about to know.
func (s *site) until(what string, is func() bool) {
	s.t.Helper()
	again, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-limit:
			s.t.Fatalf("no %s", what)
		}
	}
}

// echo runs a program at a pod's address that says what it was told, once the client has ended.
func (s *site) echo(address string) {
	l := listen(s.t)
	s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(conn)
			_, _ = conn.Write([]byte("echo " + string(text)))
			_ = conn.Close()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends[address+":8080"] = l.Addr().String()
}

func TestAStreamThatPasses(t *testing.T) {
	s, secure := newStreamSite(t)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	config := &tls.Config{RootCAs: roots, ServerName: "a.passed.com", InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		if !state.PeerCertificates[0].Equal(secure.Certificate()) {
			return errors.New("the certificate is not the backend's")
		}
		return nil
	}}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.secure+"/", strings.NewReader(strings.Repeat("long", 100_000)))
	if err != nil {
		t.Fatal(err)
	}
	if answer, body := s.do(transport, req); answer.StatusCode != 200 || body != "400000 bytes for a.passed.com" {
		t.Errorf("%d %q", answer.StatusCode, body)
	}
}

// TestAStreamThatEndsHere: TLS ends at the node, and the end of one direction reaches the other side while the other goes on.
func TestAStreamThatEndsHere(t *testing.T) {
	s, _ := newStreamSite(t)
	conn, err := tls.Dial("tcp", s.secure, &tls.Config{ServerName: "ended.com", InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); err != nil || string(text) != "echo hello" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestOthersAtThePortOfStreams: requests are answered beside streams, and a connection that nobody wants is closed.
func TestOthersAtThePortOfStreams(t *testing.T) {
	s, _ := newStreamSite(t)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: "other.com", InsecureSkipVerify: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.secure+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "other.com"
	if answer, _ := s.do(transport, req); answer.StatusCode != http.StatusNotFound {
		t.Errorf("%d", answer.StatusCode)
	}
	for _, name := range []string{"none.passed.com"} {
		if conn, err := tls.Dial("tcp", s.secure, &tls.Config{ServerName: name, InsecureSkipVerify: true}); err == nil {
			_ = conn.Close()
			t.Errorf("a connection for %s was taken", name)
		}
	}
	plain, err := net.Dial("tcp", s.secure)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(plain); len(text) != 0 {
		t.Errorf("a connection without TLS got %q", text)
	}
}

// TestReadServerName: what was read is read again, and too much is not read.
func TestReadServerName(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	go func() { _ = tls.Client(client, &tls.Config{ServerName: "a.com"}).HandshakeContext(t.Context()) }()
	again, name, err := readServerName(server)
	if err != nil || name != "a.com" {
		t.Fatalf("%q, %v", name, err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(again, first); err != nil || first[0] != 22 { // a handshake
		t.Errorf("%v, %v", first, err)
	}
	for what, text := range map[string]string{"no TLS": "GET / HTTP/1.1\r\n\r\n", "nothing": "", "half": "\x16\x03\x01\x02\x00\x01"} {
		client, server := net.Pipe()
		go func() {
			_, _ = client.Write([]byte(text))
			_ = client.Close()
		}()
		if _, _, err := readServerName(server); err == nil {
			t.Errorf("%s has a server name", what)
		}
		_ = server.Close()
	}
}

// FuzzReadServerName: whatever a client sends, the answer is a name or an error, and nothing is lost.
func FuzzReadServerName(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		client, server := net.Pipe()
		defer server.Close()
		go func() {
			_, _ = client.Write(sent)
			_ = client.Close()
		}()
		again, _, err := readServerName(server)
		if err != nil {
			return
		}
		if got, _ := io.ReadAll(again); string(got) != string(sent) {
			t.Errorf("%d bytes of %d are read again", len(got), len(sent))
		}
	})
}

// TestDrain: who is served goes on until the time is over, and is cut off then; nobody new is taken.
func TestDrain(t *testing.T) {
	s, _ := newStreamSite(t)
	inner := listen(t)
	at := s.router.Ports.HTTPS
	sorted := newSorter(counting{inner, s.router.Metrics.connections}, s.router, at)
	conn, err := tls.Dial("tcp", inner.Addr().String(), &tls.Config{ServerName: "ended.com", InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sorted.Close(); err != nil {
		t.Fatal(err)
	}
	if late, err := net.Dial("tcp", inner.Addr().String()); err == nil {
		_ = late.Close()
		t.Error("a connection was taken after the end")
	}
	if _, err := sorted.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		sorted.drain(ctx)
	}()
	if _, err := conn.Write([]byte("still here")); err != nil {
		t.Error(err)
	}
	select {
	case <-drained:
		t.Error("a connection under way was not waited for")
	default:
	}
	cancel()
	<-drained
	if text, _ := io.ReadAll(conn); len(text) > 0 {
		t.Errorf("after the cut: %q", text)
	}
}
