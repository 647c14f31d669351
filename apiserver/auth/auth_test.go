package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
)

// TestCertificatesBecomeUsers goes over real connections.
func TestCertificatesBecomeUsers(t *testing.T) {
	now := time.Now()
	ca, err := trust.NewCA(now)
	if err != nil {
		t.Fatal(err)
	}
	serve, err := ca.IssueServer(trust.Server{Name: "server-1", Endpoint: "127.0.0.1:6443"}, now)
	if err != nil {
		t.Fatal(err)
	}
	address := whoAmI(t, ca, serve)

	for name, c := range map[string]struct {
		issue  func() (*trust.Identity, error)
		name   string
		groups []string
		fails  bool
	}{
		"administrator":    {issue: func() (*trust.Identity, error) { return ca.IssueAdmin(now) }, name: "admin", groups: []string{"system:masters", "system:authenticated"}},
		"node":             {issue: func() (*trust.Identity, error) { return ca.IssueNode("a", now) }, name: "system:node:a", groups: []string{"system:nodes", "system:authenticated"}},
		"server":           {issue: func() (*trust.Identity, error) { return serve, nil }, name: "system:setpoint:server:server-1", groups: []string{"system:setpoint:servers", "system:authenticated"}},
		"expired":          {issue: func() (*trust.Identity, error) { return ca.IssueAdmin(now.Add(-2 * 365 * 24 * time.Hour)) }, fails: true},
		"another's admin":  {issue: func() (*trust.Identity, error) { return foreignAdmin(ca, now) }, fails: true},
		"certificate-less": {issue: func() (*trust.Identity, error) { return nil, nil }, name: "system:anonymous", groups: []string{"system:unauthenticated"}},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := c.issue()
			if err != nil {
				t.Fatal(err)
			}
			response, err := clientOf(t, ca, id).Get(address)
			if c.fails {
				if err == nil {
					t.Error("the connection was accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if c.name == "" {
				if response.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s, want 401", response.Status)
				}
				return
			}
			var got struct {
				Name   string
				Groups []string
			}
			if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if got.Name != c.name || !slices.Equal(got.Groups, c.groups) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// whoAmI serves the name and groups of whoever asks, or 401, and returns the URL.
func whoAmI(t *testing.T, ca *trust.CA, serve *trust.Identity) string {
	t.Helper()
	config, err := serve.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	who := auth.NewAuthenticator(ca.IsServer, nil)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, ok, err := who.AuthenticateRequest(r)
		if !ok || err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": response.User.GetName(), "groups": response.User.GetGroups()})
	}))
	server.TLS, server.Config.ErrorLog = config, log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL + "/api/v1/pods"
}

// foreignAdmin is an administrator of another cluster who presents this one's authority.
func foreignAdmin(ca *trust.CA, now time.Time) (*trust.Identity, error) {
	other, err := trust.NewCA(now)
	if err != nil {
		return nil, err
	}
	id, err := other.IssueAdmin(now)
	if err == nil {
		id.CAPEM = ca.CertPEM()
	}
	return id, err
}

func clientOf(t *testing.T, ca *trust.CA, id *trust.Identity) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.CertPEM())
	config := &tls.Config{RootCAs: pool}
	if id != nil {
		pair, err := tls.X509KeyPair(id.CertPEM, id.KeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestAnonymous(t *testing.T) {
	token := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if r.Header.Get("Authorization") != "Bearer good" {
			return nil, false, nil
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: "robot"}}, true, nil
	})
	for _, c := range []struct{ path, authorization, want string }{
		{"/healthz", "", "system:anonymous"},
		{"/livez", "", "system:anonymous"},
		{"/readyz/ping", "", "system:anonymous"},
		{"/version", "", "system:anonymous"},
		{join.Path, "", "system:anonymous"},
		{"/api", "", "system:anonymous"},
		{"/readyz", "Bearer bad", ""},
		{"/api", "Bearer good", "robot"},
		{"/healthz", "Bearer good", "robot"},
	} {
		request := httptest.NewRequest(http.MethodGet, c.path, nil)
		if c.authorization != "" {
			request.Header.Set("Authorization", c.authorization)
		}
		got := ""
		response, ok, err := auth.NewAuthenticator(nil, nil, token).AuthenticateRequest(request)
		if ok && err == nil {
			got = response.User.GetName()
		}
		if got != c.want {
			t.Errorf("%s with %q: user %q, want %q", c.path, c.authorization, got, c.want)
		}
	}
}

// certified is the verified chain of a certificate that the authority has signed for a subject.
func certified(t *testing.T, ca *trust.CA, subject pkix.Name) []*x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	asked := &x509.CertificateRequest{Subject: subject, PublicKey: &key.PublicKey}
	leafPEM, err := ca.Sign(asked, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, x509.KeyUsageDigitalSignature, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, leafErr := trust.ParseCertificate(leafPEM)
	root, rootErr := trust.ParseCertificate(ca.CertPEM())
	if err := errors.Join(leafErr, rootErr); err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{leaf, root}
}

// TestOnlyServersAreServers: the group that may do everything comes from a server's certificate of the cluster's authority and from
// nothing else, under its present and its former name.
func TestOnlyServersAreServers(t *testing.T) {
	var authorities [2]*trust.CA
	for i := range authorities {
		ca, err := trust.NewCA(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		authorities[i] = ca
	}
	const server, present, former = "system:setpoint:server:server-1", "system:setpoint:servers", "setpoint:servers"
	for name, c := range map[string]struct {
		ca      *trust.CA
		subject pkix.Name
		groups  []string
		err     error
	}{
		"a server":                     {authorities[0], pkix.Name{CommonName: server, Organization: []string{present, former}}, []string{present, user.AllAuthenticated}, nil},
		"a server of before":           {authorities[0], pkix.Name{CommonName: server, Organization: []string{former}}, []string{present, user.AllAuthenticated}, nil},
		"another authority's":          {authorities[1], pkix.Name{CommonName: server, Organization: []string{present}}, nil, auth.ErrReservedGroup},
		"another authority's former":   {authorities[1], pkix.Name{CommonName: server, Organization: []string{former}}, nil, auth.ErrReservedGroup},
		"a user's name":                {authorities[0], pkix.Name{CommonName: "jane", Organization: []string{present}}, nil, auth.ErrReservedGroup},
		"a user's name, former":        {authorities[0], pkix.Name{CommonName: "jane", Organization: []string{"dev", former}}, nil, auth.ErrReservedGroup},
		"a server's name, other group": {authorities[0], pkix.Name{CommonName: server, Organization: []string{"dev"}}, []string{"dev", user.AllAuthenticated}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/api", nil)
			request.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{certified(t, c.ca, c.subject)}}
			response, ok, err := auth.NewAuthenticator(authorities[0].IsServer, nil).AuthenticateRequest(request)
			if !errors.Is(err, c.err) || ok != (c.err == nil) {
				t.Fatalf("%v, %v, want %v", ok, err, c.err)
			}
			if ok && !slices.Equal(response.User.GetGroups(), c.groups) {
				t.Errorf("groups %q, want %q", response.User.GetGroups(), c.groups)
			}
		})
	}
	for _, group := range []string{present, former} {
		issued := authenticator.TokenFunc(func(context.Context, string) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: "jane", Groups: []string{"dev", group}}}, true, nil
		})
		if _, ok, err := auth.NewTokens(issued).AuthenticateToken(t.Context(), "x"); ok || !errors.Is(err, auth.ErrReservedGroup) {
			t.Errorf("a token that says %s: %v, %v", group, ok, err)
		}
	}
}

func TestCertificateThatExpiredMeanwhile(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "/api", nil)
	old := &x509.Certificate{NotAfter: time.Now().Add(-time.Second)}
	request.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{old}}}
	if _, ok, err := auth.NewAuthenticator(nil, nil).AuthenticateRequest(request); ok || !errors.Is(err, auth.ErrCertificateExpired) {
		t.Errorf("%v, %v", ok, err)
	}
}

var (
	admin   = &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}}
	server  = &user.DefaultInfo{Name: "system:setpoint:server:s", Groups: []string{"system:setpoint:servers", "system:authenticated"}}
	nodeA   = &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}}
	poser   = &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:authenticated"}}
	grouped = &user.DefaultInfo{Name: "eve", Groups: []string{"system:nodes", "system:authenticated"}}
	eve     = &user.DefaultInfo{Name: "eve", Groups: []string{"system:authenticated"}}
	nobody  = &user.DefaultInfo{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
)

func resource(who user.Info, verb, group, resource, subresource, namespace, name string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: group, APIVersion: "v1", Resource: resource, Subresource: subresource,
		Namespace: namespace, Name: name, ResourceRequest: true,
	}
}

func path(who user.Info, verb, path string) authorizer.Attributes {
	return authorizer.AttributesRecord{User: who, Verb: verb, Path: path}
}

func TestAuthorizer(t *testing.T) {
	rules := auth.NewAuthorizer(auth.Config{Workloads: workloads(t)})
	const leases = "coordination.k8s.io"
	for _, c := range []struct {
		request authorizer.Attributes
		allowed bool
	}{
		{resource(admin, "delete", "", "nodes", "", "", "a"), true},
		{path(admin, "get", "/metrics"), true},
		{resource(server, "create", "apps", "replicasets", "", "x", ""), true},
		{resource(eve, "get", "", "pods", "", "x", "p"), false},
		{path(nobody, "get", "/readyz"), true},
		{path(nobody, "get", "/readyz/log"), false},
		{path(nobody, "get", "/version"), false},
		{path(eve, "get", "/api"), false},
		{path(nobody, "post", join.Path), false},

		{resource(nodeA, "watch", "", "pods", "", "", ""), true}, // of others' pods it sees little
		{podsOn(nodeA, "a"), true},
		{podsOn(nodeA, "b"), true},
		{resource(nodeA, "watch", "networking.k8s.io", "networkpolicies", "", "", ""), true},
		{resource(nodeA, "get", "networking.k8s.io", "networkpolicies", "", "x", "p"), false},
		{resource(nodeA, "get", "", "pods", "", "x", "mine"), true},
		{resource(nodeA, "get", "", "pods", "", "x", "theirs"), false},
		{resource(nodeA, "list", "", "services", "", "", ""), true},
		{resource(nodeA, "get", "", "secrets", "", "x", "pulls"), true},
		{resource(nodeA, "watch", "", "secrets", "", "x", "pulls"), true},
		{resource(nodeA, "get", "", "secrets", "", "y", "pulls"), false},
		{resource(nodeA, "get", "", "secrets", "", "x", "theirs"), false},
		{resource(nodeA, "get", "", "secrets", "", "x", "pending"), false},
		{resource(nodeA, "list", "", "secrets", "", "x", ""), false},
		{resource(nodeA, "list", "", "secrets", "", "", ""), false},
		{resource(nodeA, "update", "", "secrets", "", "x", "pulls"), false},
		{resource(nodeA, "get", "", "secrets", "", "storage", "disk-stage"), true},
		{resource(nodeA, "get", "", "secrets", "", "storage", "disk-publish"), true},
		{resource(nodeA, "get", "", "secrets", "", "storage", "disk-expand"), true},
		{resource(nodeA, "list", "", "secrets", "", "storage", "disk-expand"), false},
		{resource(nodeA, "get", "", "secrets", "", "storage", "disk-controller"), false},
		{resource(nodeA, "get", "", "secrets", "", "storage", "elsewhere-stage"), false},
		{resource(nodeA, "get", "", "secrets", "", "x", "disk-stage"), false},
		{resource(nodeA, "get", "", "secrets", "", "x", "projected"), true},
		{resource(nodeA, "get", "", "secrets", "", "x", "env"), true},
		{resource(nodeA, "get", "", "secrets", "", "x", "init"), true},
		{resource(nodeA, "get", "", "configmaps", "", "x", "env-from"), true},
		{resource(nodeA, "get", "", "configmaps", "", "x", "pulls"), false},
		{resource(nodeA, "get", "", "configmaps", "", "kube-system", auth.PodNetworkName), true},
		{resource(nodeA, "update", "", "configmaps", "", "kube-system", auth.PodNetworkName), false},
		{resource(nodeA, "get", "", "configmaps", "", "x", auth.PodNetworkName), false},
		{resource(nodeA, "list", "", "configmaps", "", "kube-system", ""), false},
		{resource(nodeA, "get", "", "persistentvolumeclaims", "", "x", "disk"), true},
		{resource(nodeA, "get", "", "persistentvolumeclaims", "", "x", "mine-scratch"), true},
		{resource(nodeA, "list", "", "persistentvolumeclaims", "", "x", "disk"), false},
		{resource(nodeA, "create", "", "serviceaccounts", "token", "x", "robot"), true},
		{resource(nodeA, "create", "", "serviceaccounts", "token", "x", "other"), false},
		{resource(nodeA, "create", "", "serviceaccounts", "", "x", ""), false},
		{resource(nodeA, "create", "", "nodes", "", "", ""), true},
		{resource(nodeA, "patch", "", "nodes", "status", "", "a"), true},
		{resource(nodeA, "patch", "", "nodes", "status", "", "b"), true}, // admission judges
		{resource(nodeA, "update", "", "nodes", "", "", "b"), true},
		{resource(nodeA, "update", "", "nodes", "proxy", "", "a"), false},
		{resource(nodeA, "delete", "", "nodes", "", "", "a"), false},
		{resource(nodeA, "update", leases, "leases", "", "kube-node-lease", "a"), true},
		{resource(nodeA, "create", leases, "leases", "", "kube-node-lease", ""), true},
		{resource(nodeA, "update", leases, "leases", "", "kube-node-lease", "b"), false},
		{resource(nodeA, "update", leases, "leases", "", "kube-system", "a"), false},
		{resource(nodeA, "patch", "", "pods", "status", "x", "mine"), true},
		{resource(nodeA, "patch", "", "pods", "", "x", "mine"), false},
		{resource(nodeA, "delete", "", "pods", "", "x", "mine"), true},
		{resource(nodeA, "create", "", "pods", "", "x", ""), true},
		{resource(nodeA, "deletecollection", "", "pods", "", "x", ""), false},
		{resource(nodeA, "create", "", "pods", "exec", "x", "mine"), false},
		{resource(nodeA, "create", "", "pods", "binding", "x", "mine"), false},
		{resource(nodeA, "create", "events.k8s.io", "events", "", "x", ""), true},
		{resource(nodeA, "list", "", "namespaces", "", "", ""), true},
		{resource(nodeA, "get", "", "namespaces", "", "", "x"), false},
		{resource(nodeA, "list", "", "endpoints", "", "", ""), false},
		{resource(nodeA, "list", "networking.k8s.io", "ingresses", "", "", ""), true},
		{resource(nodeA, "update", "networking.k8s.io", "ingresses", "status", "x", "i"), false},
		{resource(nodeA, "patch", "", "persistentvolumeclaims", "status", "x", "disk"), true},
		{resource(nodeA, "create", "", "persistentvolumeclaims", "status", "x", "disk"), false},
		{resource(nodeA, "create", "storage.k8s.io", "csinodes", "", "", ""), true},
		{resource(nodeA, "update", "storage.k8s.io", "csinodes", "", "", "b"), false},
		{resource(nodeA, "create", "resource.k8s.io", "resourceslices", "", "", ""), true},
		{resource(nodeA, "get", "resource.k8s.io", "resourceslices", "", "", "mine"), true},
		{resource(nodeA, "delete", "resource.k8s.io", "resourceslices", "", "", "theirs"), false},
		{resource(nodeA, "delete", "resource.k8s.io", "resourceslices", "", "", "everybodys"), false},
		{resource(nodeA, "list", "resource.k8s.io", "resourceslices", "", "", ""), false},
		{narrowed(nodeA, "deletecollection", "resource.k8s.io", "resourceslices", "a"), true},
		{narrowed(nodeA, "deletecollection", "resource.k8s.io", "resourceslices", "b"), false},
		{resource(nodeA, "get", "storage.k8s.io", "volumeattachments", "", "", "mine"), true},
		{resource(nodeA, "get", "storage.k8s.io", "volumeattachments", "", "", "theirs"), false},
		{resource(nodeA, "create", "certificates.k8s.io", "podcertificaterequests", "", "x", ""), true},
		{resource(nodeA, "get", "certificates.k8s.io", "podcertificaterequests", "", "x", "theirs"), false},
		{narrowed(nodeA, "watch", "certificates.k8s.io", "podcertificaterequests", "a"), true},
		{narrowed(nodeA, "watch", "certificates.k8s.io", "podcertificaterequests", "b"), false},
		{resource(nodeA, "get", "rbac.authorization.k8s.io", "clusterroles", "", "", "x"), false},
		{path(nodeA, "get", "/apis"), false},
		{resource(poser, "watch", "", "pods", "", "", ""), false},
		{resource(grouped, "watch", "", "pods", "", "", ""), false},
		{authorizer.AttributesRecord{Verb: "get", Resource: "pods", ResourceRequest: true}, false},
	} {
		decision, reason, err := rules.Authorize(t.Context(), c.request)
		if err != nil || (decision == authorizer.DecisionAllow) != c.allowed {
			t.Errorf("%+v: allowed %v, want %v (%s, %v)", c.request, !c.allowed, c.allowed, reason, err)
		}
	}
}

// TestRefusalsCatchUpFirst: this replica may not know yet what another has allowed.
func TestRefusalsCatchUpFirst(t *testing.T) {
	for name, c := range map[string]struct {
		who     user.Info
		catchUp error
		asked   int
		allowed bool
	}{
		"allowed by what comes": {eve, nil, 2, true},
		"nothing comes":         {grouped, nil, 2, false},
		"the others are gone":   {eve, errors.New("no quorum"), 1, false},
		"anonymous":             {nobody, nil, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked, known := 0, false
			next := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				asked++
				if known && a.GetUser() == eve {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})
			rules := auth.NewAuthorizer(auth.Config{Next: next, CatchUp: func(context.Context) error {
				known = true
				return c.catchUp
			}})
			decision, _, err := rules.Authorize(t.Context(), resource(c.who, "get", "", "pods", "", "x", "p"))
			if err != nil || (decision == authorizer.DecisionAllow) != c.allowed || asked != c.asked {
				t.Errorf("%v after %d questions, %v", decision, asked, err)
			}
		})
	}
}

func TestRefusalSaysWhy(t *testing.T) {
	rules := auth.NewAuthorizer(auth.Config{})
	_, reason, _ := rules.Authorize(t.Context(), resource(nodeA, "update", "coordination.k8s.io", "leases", "", "kube-node-lease", "b"))
	if diff := cmp.Diff("can only access node lease with the same name as the requesting node", reason); diff != "" {
		t.Error(diff)
	}
}

func TestNextAuthorizer(t *testing.T) {
	next := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "by a role", nil
	})
	rules := auth.NewAuthorizer(auth.Config{Next: next})
	if decision, _, _ := rules.Authorize(t.Context(), resource(eve, "get", "", "pods", "", "x", "p")); decision != authorizer.DecisionAllow {
		t.Error("the next authorizer was not asked")
	}
}
