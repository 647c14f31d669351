package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// judged says for each route of the port whom it lets in: "-" is 401 or 403, "+" any other answer. Columns are the personas in their order.
const judged = `
                                                                       admin server tina as-tina as-node as-server node account stranger
POST /setpoint.v1.ClusterService/Status                                +     +      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Members                               +     +      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Loops                                 +     +      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Pace                                  +     +      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Lesson                                +     -      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Why                                   +     +      -    -       -       -         -    -       -
GET /setpoint.v1.ClusterService/History?kind=secret&namespace=default&name=of-nobody + +    -    -       -       -         -    -       -
GET /setpoint.v1.ClusterService/Diff?kind=secret&namespace=default     +     +      -    -       -       -         -    -       -
GET /setpoint.v1.ClusterService/Moment?time=2000-01-01T00:00:00Z       +     +      +    +       +       -         +    +       -
POST /setpoint.v1.ClusterService/Purge?kind=secret&name=of-nobody      +     -      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Change                                +     -      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/ServerToken                           +     -      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Rotate                                +     -      -    -       -       -         -    -       -
POST /setpoint.v1.ClusterService/Held                                  +     +      -    -       -       -         -    -       -
GET /setpoint.v1.ClusterService/Backup                                 +     -      -    -       -       -         -    -       -
POST /setpoint.v1.PartsService/Report                                  +     +      -    -       -       -         -    -       -
GET /setpoint.v1.PartsService/containerLogs/                           +     +      -    -       -       -         -    -       -
POST /setpoint.raftstore.forward.v1.PeerService/                       -     +      -    -       -       -         -    -       -
POST /setpoint.session.v1.SessionService/                              -     -      -    -       +       -         +    -       -
POST /setpoint.session.v1.DigestService/                               +     +      -    -       -       -         -    -       -
POST /setpoint.v1.JoinService/Join                                     +     +      +    +       +       -         +    +       +
POST /setpoint.v1.ServerJoinService/Join                             +     +      +    +       +       -         +    +       +
GET /healthz                                                           +     +      +    +       +       -         +    +       +
GET /metrics                                                           +     +      -    -       -       -         -    -       -
GET /debug/pprof/cmdline                                               +     +      -    -       -       -         -    -       -
GET /debug/api_priority_and_fairness/dump_requests                     +     +      -    -       -       -         -    -       -
GET /version                                                           +     +      +    +       +       -         +    +       +
GET /apis                                                              +     +      +    +       +       -         +    +       -
GET /openapi/v3                                                        +     +      +    +       +       -         +    +       -
GET /openid/v1/jwks                                                    +     +      -    -       -       -         -    +       -
GET /api/v1/namespaces/default/secrets                                 +     +      -    -       -       -         -    -       -
GET /api/v1/nodes/node-1                                               +     +      -    -       +       -         +    -       -
POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews            +     +      +    +       +       -         +    +       -
GET /apis/nobody.example.com/v1/things                                 +     +      -    -       -       -         -    -       -
GET /nothing                                                           +     +      -    -       -       -         -    -       -
`

// personas ask as somebody, in the order of the columns.
func (s *site) personas(t *testing.T) []func(*http.Request) {
	t.Helper()
	issue := func(id *trust.Identity, err error) *tls.ConnectionState {
		if err != nil {
			t.Fatal(err)
		}
		return s.shown(t, id)
	}
	register(t, s.server, "node-1")
	now := time.Now()
	admin := s.shown(t, s.cluster.Admin)
	tina := s.shown(t, s.person(t, "tina"))
	var token *authenticationv1.TokenRequest
	soon(t, func() string { // a loop makes the account
		var err error
		token, err = s.client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	as := func(state *tls.ConnectionState, headers ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.TLS = state
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
		}
	}
	return []func(*http.Request){
		as(admin), as(issue(s.cluster.CA.IssueServer(s.self, now))), as(tina), as(admin, "Impersonate-User", "tina"),
		as(admin, "Impersonate-User", "system:node:node-1", "Impersonate-Group", "system:nodes"),
		as(admin, "Impersonate-User", "system:setpoint:server:server-1", "Impersonate-Group", trust.GroupServers),
		as(issue(s.cluster.CA.IssueNode("node-1", now))), as(nil, "Authorization", "Bearer "+token.Status.Token), as(nil),
	}
}

// person is somebody with a certificate of the cluster and no rights.
func (s *site) person(t *testing.T, name string) *trust.Identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	asked := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}, PublicKey: &key.PublicKey}
	certPEM, err := s.cluster.CA.Sign(asked, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, x509.KeyUsageDigitalSignature, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &trust.Identity{CertPEM: certPEM}
}

// TestOneJudgementForTheWholePort: the API and the services of the parts let in the same people, and whoever acts as another is judged as
// that other.
func TestOneJudgementForTheWholePort(t *testing.T) {
	s := newSite(t)
	personas := s.personas(t)
	unseen := map[string]bool{}
	for _, service := range s.server.api.services(s.client) {
		unseen[service.Prefix] = true
	}
	rows := strings.Split(strings.Trim(judged, "\n"), "\n")
	names := strings.Fields(rows[0])
	for _, row := range rows[1:] {
		fields := strings.Fields(row)
		path, _, _ := strings.Cut(fields[1], "?")
		delete(unseen, path)
		for i, persona := range personas {
			r := ask(fields[0], fields[1], `{"kind":"Secret","namespace":"default","name":"of-nobody"}`)
			persona(r)
			w := httptest.NewRecorder()
			s.server.api.server.ServeHTTP(w, r.WithContext(t.Context()))
			got := "+"
			if w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized && !strings.Contains(w.Body.String(), "join token") {
				got = "-"
			}
			if got != fields[2+i] {
				t.Errorf("%s %s as %s: %d, want %s: %.200s", fields[0], fields[1], names[i], w.Code, fields[2+i], fmt.Sprint(w.Body))
			}
		}
	}
	for prefix := range unseen {
		t.Errorf("the table lacks %s", prefix)
	}
}
