package server

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

// site is one server, and who administers it.
type site struct {
	server  *Server
	self    trust.Server
	cluster *trust.Cluster
	client  kubernetes.Interface
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOf(t, Config{Logger: slog.New(slog.DiscardHandler)})
}

// newSiteOf has what the config says beside names, folders and addresses.
func newSiteOf(t *testing.T, config Config) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{self: trust.Server{Name: "server-1", Endpoint: listener.Addr().String()}}
	if s.cluster, err = trust.InitCluster(t.TempDir(), []trust.Server{s.self}, time.Now()); err != nil {
		t.Fatal(err)
	}
	config.Name, config.DataDir, config.Trust, config.Listener = s.self.Name, t.TempDir(), s.cluster, listener
	config.InitialServers = []trust.Server{s.self}
	if s.server, err = Start(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.server.Stop() })
	if err := s.server.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.client, err = kubernetes.NewForConfig(s.server.api.door.Config(inprocess.Server, 0)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) options(t *testing.T, name, dataDir, token string) *host.Options {
	t.Helper()
	file := ""
	if token != "" {
		file = filepath.Join(t.TempDir(), "node.token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &host.Options{Name: name, DataDir: dataDir, TokenFile: file, Servers: []string{s.self.Endpoint}, Logger: slog.New(slog.DiscardHandler)}
}

func (s *site) token(t *testing.T) *jointoken.Token {
	t.Helper()
	return s.tokenFor(t, jointoken.NodesDefault)
}

// tokenFor takes so many names.
func (s *site) tokenFor(t *testing.T, nodes int) *jointoken.Token {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		token, err := jointoken.Create(t.Context(), s.client, jointoken.Wanted{TTL: time.Hour, Nodes: nodes, Description: "test"}, time.Now())
		if err == nil {
			return token
		}
		if !errors.Is(err, jointoken.ErrNoAuthority) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestJoiningServer attacks the whole with tokens: each of these worked when a token was
// good for every name and for ever.
func TestJoiningServer(t *testing.T) {
	s := newSite(t)
	t.Run("tokens end", s.testTokensEnd)
	t.Run("names", s.testNames)
	t.Run("so many names", s.testSoManyNames)
	t.Run("names by request", s.testNamesByRequest)
	t.Run("the first token", s.testFirstToken)
}

func (s *site) testTokensEnd(t *testing.T) {
	token := s.token(t)
	if _, err := s.options(t, "early", t.TempDir(), token.Token).Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	listed, err := jointoken.List(t.Context(), s.client)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(listed)
	if err != nil || !strings.Contains(string(text), token.ID) || strings.Contains(string(text), strings.Split(token.Token, ".")[2]) {
		t.Errorf("the list %s lacks it or shows its secret (%v)", text, err)
	}
	if _, err := jointoken.Delete(t.Context(), s.client, token.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := s.options(t, "late", t.TempDir(), token.Token).Join(t.Context()); !errors.Is(err, join.ErrTokenRefused) {
		t.Errorf("a token that was deleted: %v", err)
	}
	old, err := tokens.New(tokens.RoleNode, s.cluster.CA.Pin())
	if err != nil {
		t.Fatal(err)
	}
	secrets := s.client.CoreV1().Secrets(metav1.NamespaceSystem)
	expired := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + old.ID()}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{
			"token-id": old.ID(), "token-secret": old.Key(), "usage-bootstrap-authentication": "true",
			"expiration": time.Now().Add(-time.Second).UTC().Format(time.RFC3339),
		},
	}
	if _, err := secrets.Create(t.Context(), expired, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.options(t, "late", t.TempDir(), old.Text()).Join(t.Context()); !errors.Is(err, join.ErrTokenRefused) {
		t.Errorf("a token that has expired: %v", err)
	}
	for _, c := range []struct {
		err, want error
	}{
		{func() error { _, err := jointoken.Delete(t.Context(), s.client, "abcdef"); return err }(), jointoken.ErrNone},
		{func() error { _, err := jointoken.Delete(t.Context(), s.client, "../x"); return err }(), jointoken.ErrID},
		{func() error {
			_, err := jointoken.Create(t.Context(), s.client, jointoken.Wanted{Nodes: 1}, time.Now())
			return err
		}(), jointoken.ErrLife},
		{func() error {
			_, err := jointoken.Create(t.Context(), s.client, jointoken.Wanted{TTL: time.Hour, Nodes: jointoken.NodesMax + 1}, time.Now())
			return err
		}(), jointoken.ErrNodes},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
}

func (s *site) testNames(t *testing.T) {
	token, dir := s.token(t), t.TempDir()
	nodes := s.client.CoreV1().Nodes()
	living, err := s.options(t, "living", dir, token.Token).Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	node := living.Node()
	if _, err := nodes.Get(t.Context(), "living", metav1.GetOptions{}); err != nil {
		t.Errorf("it does not hold its name before it has registered: %v", err)
	}
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"living", "by-hand"} {
		if _, err := s.options(t, name, t.TempDir(), token.Token).Join(t.Context()); !errors.Is(err, join.ErrRefused) || !strings.Contains(err.Error(), "kubectl delete node "+name) {
			t.Errorf("joined as %s, whose key it does not hold: %v", name, err)
		}
	}
	if _, err := s.options(t, s.self.Name, t.TempDir(), token.Token).Join(t.Context()); !errors.Is(err, join.ErrRefused) {
		t.Errorf("joined as a server: %v", err)
	}
	again, err := s.options(t, "living", dir, "").Join(t.Context())
	if err != nil || string(again.Node().Identity.CertPEM) != string(node.Identity.CertPEM) {
		t.Errorf("with a certificate and without a token: %v", err)
	}
	if _, err := s.options(t, "living", t.TempDir(), "").Join(t.Context()); !errors.Is(err, join.ErrNoToken) {
		t.Errorf("with neither: %v", err)
	}
	s.endCertificate(t, dir, "living")
	if _, err := s.options(t, "living", dir, "").Join(t.Context()); !errors.Is(err, join.ErrCertificateEnded) {
		t.Errorf("its certificate has ended, and it has no token: %v", err)
	}
	if _, err := s.options(t, "living", dir, token.Token).Join(t.Context()); err != nil {
		t.Errorf("its certificate has ended, and it has a token and its key: %v", err)
	}
	if err := nodes.Delete(t.Context(), "living", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.options(t, "living", t.TempDir(), token.Token).Join(t.Context()); err != nil {
		t.Errorf("its Node was deleted: %v", err)
	}
	if _, err := join.Renew(t.Context(), []string{s.self.Endpoint}, "living", node); !errors.Is(err, join.ErrRefused) {
		t.Errorf("the former owner of the name: %v", err)
	}
	s.testRecord(t)
}

// testSoManyNames: a token takes its number of names, and each of them again.
func (s *site) testSoManyNames(t *testing.T) {
	token, first := s.tokenFor(t, 2), t.TempDir()
	for _, c := range []struct{ name, dir, refusal string }{
		{"one", first, ""},
		{"two", t.TempDir(), ""},
		{"three", t.TempDir(), "as many nodes as it may (2)"},
	} {
		_, err := s.options(t, c.name, c.dir, token.Token).Join(t.Context())
		if c.refusal == "" && err != nil || c.refusal != "" && (!errors.Is(err, join.ErrRefused) || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.refusal)
		}
	}
	s.endCertificate(t, first, "one")
	if _, err := s.options(t, "one", first, token.Token).Join(t.Context()); err != nil {
		t.Errorf("a name that it took: %v", err)
	}
	listed, err := jointoken.List(t.Context(), s.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range listed {
		if other.ID == token.ID && (other.Nodes != 2 || other.NodesMax != 2) {
			t.Errorf("%+v", other)
		}
	}
}

// testNamesByRequest: whoever asks by a CertificateSigningRequest gets no other names than who joins, and counts for the same token.
func (s *site) testNamesByRequest(t *testing.T) {
	token := s.tokenFor(t, 1)
	parsed, err := tokens.Parse(token.Token)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + s.self.Endpoint, BearerToken: parsed.ID() + "." + parsed.Key(), TLSClientConfig: rest.TLSClientConfig{CAData: s.cluster.CA.CertPEM()},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want string }{
		{s.self.Name, "no node's"},
		{"localhost", "no node's"},
		{"kubernetes.default", "no node's"},
		{strings.Repeat("a", 64), "63 bytes"},
		{"by-request", "Approved"},
		{"by-another-request", "as many nodes as it may (1)"},
	} {
		if got := askForCertificate(t, client, s.client, c.name); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// askForCertificate is the answer to a kubelet that asks for its first certificate.
func askForCertificate(t *testing.T, kubelet, admin kubernetes.Interface, node string) (answer string) {
	t.Helper()
	keyPEM, err := trust.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	requestPEM, err := trust.NewNodeRequest(node, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: requestPEM, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if csr, err = kubelet.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr, metav1.CreateOptions{}); err != nil {
		return err.Error()
	}
	soon(t, func() string {
		now, err := admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr.Name, metav1.GetOptions{})
		if err != nil || len(now.Status.Conditions) == 0 {
			return fmt.Sprint("no answer: ", err)
		}
		answer = fmt.Sprint(now.Status.Conditions[0].Type, " ", now.Status.Conditions[0].Message)
		return ""
	})
	return answer
}

// testRecord: a node that joined before names had keys gets its record with its certificate.
func (s *site) testRecord(t *testing.T) {
	dir := t.TempDir()
	node, err := s.options(t, "older", dir, s.token(t).Token).Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes := s.client.CoreV1().Nodes()
	drop := []byte(`{"metadata":{"annotations":null}}`)
	if _, err := nodes.Patch(t.Context(), "older", types.MergePatchType, drop, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := join.Renew(t.Context(), []string{s.self.Endpoint}, "older", node.Node()); err != nil {
		t.Fatal(err)
	}
	if known, err := nodes.Get(t.Context(), "older", metav1.GetOptions{}); err != nil || known.Annotations["setpoint.io/node-key"] == "" {
		t.Errorf("no record was made: %v", err)
	}
}

// endCertificate makes the certificate in an agent's folder one that ended a day ago.
func (s *site) endCertificate(t *testing.T, dir, name string) {
	t.Helper()
	node, err := trust.LoadNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	requestPEM, err := trust.NewNodeRequest(name, node.Identity.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.ParseNodeRequest(requestPEM, name)
	if err != nil {
		t.Fatal(err)
	}
	if node.Identity.CertPEM, err = s.cluster.CA.SignNode(request, time.Now().Add(-366*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := node.Save(dir); err != nil {
		t.Fatal(err)
	}
}

// testFirstToken: the token of `cluster init` is good once the cluster runs, and does not
// come back when somebody has ended it.
func (s *site) testFirstToken(t *testing.T) {
	first := s.cluster.NodeToken
	if _, err := s.options(t, "first", t.TempDir(), first.Text()).Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := "bootstrap-token-" + first.ID()
	secrets := s.client.CoreV1().Secrets(metav1.NamespaceSystem)
	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if end, err := time.Parse(time.RFC3339, string(secret.Data["expiration"])); err != nil || time.Until(end) > tokens.Life {
		t.Errorf("it ends at %s (%v)", end, err)
	}
	if _, err := jointoken.Delete(t.Context(), s.client, first.ID()); err != nil {
		t.Fatal(err)
	}
	if err := jointoken.EnsureFirst(t.Context(), s.client, first, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it came back: %v", err)
	}
}

// TestServedCertificatesHaveNoOtherNames: whatever a machine asks for, clients of the
// cluster trust nothing that it can serve with.
func TestServedCertificatesHaveNoOtherNames(t *testing.T) {
	s := newSite(t)
	node, err := s.options(t, "kubernetes-webhook", t.TempDir(), s.token(t).Token).Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.cluster.CA.CertPEM())
	for what, certPEM := range map[string][]byte{"client": node.Node().Identity.CertPEM, "serving": node.Node().Serving.CertPEM} {
		certificate, err := trust.ParseCertificate(certPEM)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
			t.Errorf("clients of the cluster believe the %s certificate of a server", what)
		}
	}
}
