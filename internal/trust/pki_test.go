package trust

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
	"net/netip"
	"slices"
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
	if got := certificate.Subject.String(); got != "CN=system:setpoint:server:server-1,O=setpoint:servers+O=system:setpoint:servers" {
		t.Error(got)
	}
	if want := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}; !slices.Equal(certificate.ExtKeyUsage, want) {
		t.Errorf("usages %v", certificate.ExtKeyUsage)
	}
	if age := now.Sub(certificate.NotBefore); age < clockSkewAllowed || age > clockSkewAllowed+time.Minute {
		t.Errorf("it begins %s ago", age)
	}
}

// TestShortCertificatesBeginNow: a certificate that was asked for is valid no more than five minutes longer than that, and a client that renews its certificate at 70 to 90 % of it, as client-go does, is not to do so at once.
func TestShortCertificatesBeginNow(t *testing.T) {
	now := time.Now()
	ca := newCA(t, now)
	text := must[[]byte](t)(NewNodeRequest("n", must[[]byte](t)(NewKey())))
	request := must[*x509.CertificateRequest](t)(parseRequest(text))
	for life, most := range map[time.Duration]time.Duration{time.Minute: 6 * time.Second, time.Hour: 5 * time.Minute, leafValidity: 5 * time.Minute} {
		signed := must[[]byte](t)(ca.Sign(request, nil, 0, life, time.Now()))
		certificate := must[*x509.Certificate](t)(ParseCertificate(signed))
		if age := now.Sub(certificate.NotBefore).Round(5 * time.Second); age > most.Round(5*time.Second) || age < 0 {
			t.Errorf("of %s: it begins %s ago, want at most %s", life, age, most)
		}
	}
}

func TestLeafDoesNotOutliveItsAuthority(t *testing.T) {
	now := time.Now()
	ca := newCA(t, now.Add(-caValidity+time.Hour))
	certificate := must[*x509.Certificate](t)(ParseCertificate(must[*Identity](t)(ca.IssueAdmin(now)).CertPEM))
	if certificate.NotAfter.After(ca.signing().certificate.NotAfter) {
		t.Errorf("%s is after %s", certificate.NotAfter, ca.signing().certificate.NotAfter)
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
	honest := must[*NodeRequest](t)(ParseNodeRequest(requestOf(t, pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}}), "a"))
	certificate := must[*x509.Certificate](t)(ParseCertificate(must[[]byte](t)(ca.SignNode(honest, now))))
	if len(certificate.DNSNames)+len(certificate.IPAddresses) > 0 {
		t.Errorf("a client's certificate bears the names %v %v", certificate.DNSNames, certificate.IPAddresses)
	}
	if got := certificate.ExtKeyUsage; !slices.Equal(got, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
		t.Errorf("a client's certificate may be used for %v", got)
	}
	if got := certificate.Subject.String(); got != "CN=system:node:a,O=system:nodes" || certificate.IsCA {
		t.Errorf("subject %s, CA %v", got, certificate.IsCA)
	}
}

// TestSignNodeServing: the certificate a node serves with bears its name, and the address
// from which it was seen to call if that is its own; clients of the cluster do not trust it.
func TestSignNodeServing(t *testing.T) {
	now := time.Now()
	ca := newCA(t, now)
	serving := must[*CA](t)(ca.NodeServing())
	if again := must[*CA](t)(ca.NodeServing()); !slices.Equal(serving.CertPEM(), again.CertPEM()) {
		t.Error("two servers have two authorities")
	}
	request := must[*NodeRequest](t)(ParseNodeRequest(requestOf(t, pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}}), "a"))
	services := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd96::/112")}
	for seen, want := range map[string]int{"192.0.2.7": 1, "fd97::1": 1, "127.0.0.1": 0, "::1": 0, "10.96.0.1": 0, "fd96::1": 0, "0.0.0.0": 0, "evil.example": 0, "": 0} {
		certificate := must[*x509.Certificate](t)(ParseCertificate(must[[]byte](t)(serving.SignNodeServing(request, seen, services, now))))
		if !slices.Equal(certificate.DNSNames, []string{"a"}) || len(certificate.IPAddresses) != want {
			t.Errorf("seen at %q: it bears %v %v", seen, certificate.DNSNames, certificate.IPAddresses)
		}
		if got := certificate.ExtKeyUsage; !slices.Equal(got, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
			t.Errorf("it may be used for %v", got)
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca.signing().certificate)
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err == nil {
			t.Error("whoever trusts the cluster trusts it")
		}
	}
}

func TestNodeRequestsRefused(t *testing.T) {
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
			if _, err := ParseNodeRequest(c.request, c.node); !errors.Is(err, ErrBadRequest) && !errors.Is(err, ErrReservedName) {
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
	serving := must[*CA](t)(ca.NodeServing())
	server := must[*Identity](t)(ca.IssueServer(testServer, now))
	node := must[*Identity](t)(ca.IssueNode("a", now))
	admin := must[*Identity](t)(ca.IssueAdmin(now))
	expired := must[*Identity](t)(ca.IssueNode("a", now.Add(-2*leafValidity)))
	stranger := must[*Identity](t)(newCA(t, now).IssueServer(testServer, now))
	foreigner := must[*Identity](t)(newCA(t, now).IssueNode("a", now))
	earlier := must[*Identity](t)(ca.issue(leaf{commonName: NodeUser("a"), groups: []string{GroupNodes}, names: []string{"a"}, client: true, server: true}, now))
	poser := must[*Identity](t)(serving.issue(leaf{commonName: NodeUser("a"), groups: []string{GroupNodes}, names: []string{"server-1"}, server: true}, now))
	poser.CAPEM = ca.CertPEM()

	toServer := func(id *Identity) *tls.Config {
		config := must[*tls.Config](t)(id.ClientConfig())
		config.ServerName = "server-1"
		return config
	}
	toAgent := func(id *Identity, node string) *tls.Config {
		return must[*tls.Config](t)(must[*Live](t)(NewLive(id)).NodeClientConfig(node, serving))
	}
	agent := func(id *Identity) *tls.Config {
		return must[*tls.Config](t)(must[*Live](t)(NewLive(id)).AgentConfig(ca.CertPEM()))
	}
	peer := func(id *Identity) *tls.Config { return must[*tls.Config](t)(must[*Live](t)(NewLive(id)).PeerConfig()) }
	kubelet := agent(must[*Identity](t)(serving.IssueNodeServing("a", ca, now)))
	user := toServer(admin)
	user.VerifyConnection = nil // as kubectl: it asks for the name alone
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		good           bool
	}{
		{"a node calls a server", must[*tls.Config](t)(server.ServerConfig()), toServer(node), true},
		{"an expired node calls a server", must[*tls.Config](t)(server.ServerConfig()), toServer(expired), false},
		{"a node calls a node that poses as a server", must[*tls.Config](t)(poser.ServerConfig()), toServer(node), false},
		{"a user calls a node that poses as a server", must[*tls.Config](t)(poser.ServerConfig()), user, false},
		{"a user calls a node's client certificate", must[*tls.Config](t)(node.ServerConfig()), user, false},
		{"a server of another cluster calls", must[*tls.Config](t)(server.ServerConfig()), toServer(stranger), false},
		{"a server calls an agent", kubelet, toAgent(server, "a"), true},
		{"a server calls the wrong agent", kubelet, toAgent(server, "b"), false},
		{"a server calls an agent of the cluster's own authority", agent(earlier), toAgent(server, "a"), false},
		{"a node calls an agent", kubelet, peer(node), true},
		{"a node of another cluster calls an agent", kubelet, peer(foreigner), false},
		{"an expired node calls an agent", kubelet, peer(expired), false},
		{"an administrator calls an agent", kubelet, toAgent(admin, "a"), false},
		{"a server calls an agent without a certificate", must[*tls.Config](t)((&Live{}).AgentConfig(ca.CertPEM())), toAgent(server, "a"), false},
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
