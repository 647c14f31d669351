package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

var testServer = Server{Name: "server-1", Endpoint: "one.example:6443", Addresses: []string{"192.0.2.1"}}

func newCA(t *testing.T, now time.Time) *CA {
	t.Helper()
	ca, err := NewCA(now)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func must[T any](t *testing.T) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestServerCertificate(t *testing.T) {
	now := time.Now()
	id := must[*Identity](t)(newCA(t, now).IssueServer(testServer, now))
	certificate := must[*x509.Certificate](t)(ParseCertificate(id.CertPEM))
	for _, name := range []string{
		"server-1", "one.example", "192.0.2.1", "localhost", "127.0.0.1", "::1", "10.96.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	} {
		if err := certificate.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if certificate.VerifyHostname("other.example") == nil {
		t.Error("it is good for other.example")
	}
	if got := certificate.Subject.String(); got != "CN=system:setpoint:server:server-1,O=setpoint:servers" {
		t.Error(got)
	}
	if want := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}; !slices.Equal(certificate.ExtKeyUsage, want) {
		t.Errorf("usages %v", certificate.ExtKeyUsage)
	}
	if age := now.Sub(certificate.NotBefore); age < clockSkewAllowed || age > clockSkewAllowed+time.Minute {
		t.Errorf("it begins %s ago", age)
	}
}

func TestLeafDoesNotOutliveItsAuthority(t *testing.T) {
	now := time.Now()
	ca := newCA(t, now.Add(-caValidity+time.Hour))
	certificate := must[*x509.Certificate](t)(ParseCertificate(must[*Identity](t)(ca.IssueAdmin(now)).CertPEM))
	if certificate.NotAfter.After(ca.certificate.NotAfter) {
		t.Errorf("%s is after %s", certificate.NotAfter, ca.certificate.NotAfter)
	}
}

// requestOf makes a request with any subject, as a hostile agent would.
func requestOf(t *testing.T, subject pkix.Name) []byte {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.CertificateRequest{Subject: subject, DNSNames: []string{"kubernetes.default.svc"}}
	der := must[[]byte](t)(x509.CreateCertificateRequest(rand.Reader, template, key))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestSignNode(t *testing.T) {
	now := time.Now()
	ca := newCA(t, now)
	honest := requestOf(t, pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}})
	certPEM, err := ca.SignNode(honest, "a", []string{"192.0.2.7", "127.0.0.1", "10.96.0.1", "evil.example"}, now)
	if err != nil {
		t.Fatal(err)
	}
	certificate := must[*x509.Certificate](t)(ParseCertificate(certPEM))
	if got := certificate.DNSNames; !slices.Equal(got, []string{"a"}) {
		t.Errorf("names %v: those of the request and of the API must be left out", got)
	}
	if got := certificate.IPAddresses; len(got) != 1 || !got[0].Equal(net.IPv4(192, 0, 2, 7)) {
		t.Errorf("addresses %v", got)
	}
	if got := certificate.Subject.String(); got != "CN=system:node:a,O=system:nodes" || certificate.IsCA {
		t.Errorf("subject %s, CA %v", got, certificate.IsCA)
	}
}

func TestSignNodeRefuses(t *testing.T) {
	now := time.Now()
	ca := newCA(t, now)
	nodes := []string{"system:nodes"}
	broken := requestOf(t, pkix.Name{CommonName: "system:node:a", Organization: nodes})
	block, _ := pem.Decode(broken)
	block.Bytes[len(block.Bytes)-1] ^= 1
	for name, c := range map[string]struct {
		request []byte
		node    string
	}{
		"another node's name":    {requestOf(t, pkix.Name{CommonName: "system:node:b", Organization: nodes}), "a"},
		"the masters group":      {requestOf(t, pkix.Name{CommonName: "system:node:a", Organization: []string{"system:masters"}}), "a"},
		"one group more":         {requestOf(t, pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes", "system:masters"}}), "a"},
		"a server's name":        {requestOf(t, pkix.Name{CommonName: "system:setpoint:server:s", Organization: []string{"setpoint:servers"}}), "s"},
		"no group":               {requestOf(t, pkix.Name{CommonName: "system:node:a"}), "a"},
		"a wrong signature":      {pem.EncodeToMemory(block), "a"},
		"no PEM":                 {[]byte("nonsense"), "a"},
		"two requests":           {slices.Concat(broken, broken), "a"},
		"a name of the API":      {requestOf(t, pkix.Name{CommonName: "system:node:kubernetes.default.svc", Organization: nodes}), "kubernetes.default.svc"},
		"an address as name":     {requestOf(t, pkix.Name{CommonName: "system:node:192.0.2.1", Organization: nodes}), "192.0.2.1"},
		"an empty name":          {requestOf(t, pkix.Name{CommonName: "system:node:", Organization: nodes}), ""},
		"a name with upper case": {requestOf(t, pkix.Name{CommonName: "system:node:A", Organization: nodes}), "A"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ca.SignNode(c.request, c.node, nil, now); !errors.Is(err, ErrBadRequest) {
				t.Errorf("want ErrBadRequest, got %v", err)
			}
		})
	}
}

func TestParseServers(t *testing.T) {
	servers := must[[]Server](t)(ParseServers("a=a.example:6443, b=192.0.2.1:7000"))
	if len(servers) != 2 || servers[1].Name != "b" || servers[1].Endpoint != "192.0.2.1:7000" {
		t.Errorf("%+v", servers)
	}
	for _, text := range []string{"", "a", "a=b", "A=b:1", "../x=b:1", "a=b:1,a=c:1"} {
		if _, err := ParseServers(text); !errors.Is(err, ErrBadServer) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestToken(t *testing.T) {
	ca := newCA(t, time.Now())
	token := must[Token](t)(NewToken(RoleNode, ca))
	parsed := must[Token](t)(ParseToken(" " + token.Text() + "\n"))
	if !parsed.Equal(token) || parsed.Pin != ca.Pin() {
		t.Errorf("%+v", parsed)
	}
	if strings.Contains(token.String(), token.Secret) {
		t.Error("String shows the secret")
	}
	for name, changed := range map[string]Token{
		"secret": {token.Role, token.Pin, token.Secret + "0"},
		"pin":    {token.Role, strings.Repeat("0", 64), token.Secret},
	} {
		if changed.Equal(token) {
			t.Errorf("a token with another %s is equal", name)
		}
	}
	for _, text := range []string{"", "a.b", "server." + token.Pin + ".x", "node.zz.x", "node." + token.Pin + ".", token.Text() + ".x", strings.Repeat("a", 10000)} {
		if _, err := ParseToken(text); !errors.Is(err, ErrBadToken) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// handshake connects two configurations and returns what each side says.
func handshake(server, client *tls.Config) (serverErr, clientErr error) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	done := make(chan error, 1)
	go func() {
		connection := tls.Server(there, server)
		err := connection.Handshake()
		if err == nil {
			_, err = connection.Write([]byte{1}) // in TLS 1.3 the client learns by reading
		}
		done <- err
		there.Close()
	}()
	connection := tls.Client(here, client)
	clientErr = connection.Handshake()
	if clientErr == nil {
		_, clientErr = connection.Read(make([]byte, 1))
	}
	here.Close()
	return <-done, clientErr
}

func TestConnections(t *testing.T) {
	now := time.Now()
	ca := newCA(t, now)
	server := must[*Identity](t)(ca.IssueServer(testServer, now))
	node := must[*Identity](t)(ca.IssueNode("a", nil, now))
	admin := must[*Identity](t)(ca.IssueAdmin(now))
	expired := must[*Identity](t)(ca.IssueNode("a", nil, now.Add(-2*leafValidity)))
	stranger := must[*Identity](t)(newCA(t, now).IssueServer(testServer, now))

	toServer := func(id *Identity) *tls.Config {
		config := must[*tls.Config](t)(id.ClientConfig())
		config.ServerName = "server-1"
		return config
	}
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		good           bool
	}{
		{"a node calls a server", must[*tls.Config](t)(server.ServerConfig()), toServer(node), true},
		{"an expired node calls a server", must[*tls.Config](t)(server.ServerConfig()), toServer(expired), false},
		{"a node calls a node that poses as a server", must[*tls.Config](t)(node.ServerConfig()), toServer(node), false},
		{"a server of another cluster calls", must[*tls.Config](t)(server.ServerConfig()), toServer(stranger), false},
		{"a server calls an agent", must[*tls.Config](t)(node.AgentConfig()), must[*tls.Config](t)(server.NodeClientConfig("a")), true},
		{"a server calls the wrong agent", must[*tls.Config](t)(node.AgentConfig()), must[*tls.Config](t)(server.NodeClientConfig("b")), false},
		{"a node calls an agent", must[*tls.Config](t)(node.AgentConfig()), must[*tls.Config](t)(node.NodeClientConfig("a")), false},
		{"an administrator calls an agent", must[*tls.Config](t)(node.AgentConfig()), must[*tls.Config](t)(admin.NodeClientConfig("a")), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			serverErr, clientErr := handshake(c.server, c.client)
			if good := serverErr == nil && clientErr == nil; good != c.good {
				t.Errorf("good: %v, want %v (server: %v, client: %v)", good, c.good, serverErr, clientErr)
			}
		})
	}
}

func TestRequireServerWithoutCertificate(t *testing.T) {
	if err := RequireServer(tls.ConnectionState{}); !errors.Is(err, ErrNotServer) {
		t.Error(err)
	}
}
