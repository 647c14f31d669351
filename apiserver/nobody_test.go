package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// leaderless is a log that loses its leader, and counts who asks it.
type leaderless struct {
	*raftstoretest.Local
	lost  bool
	asked int
}

func (l *leaderless) ReadIndex(ctx context.Context) (*state.Root, error) {
	if l.lost {
		l.asked++
		return nil, raftstore.ErrNoLeader
	}
	return l.Local.ReadIndex(ctx)
}

// byNode is a request on a connection of a node.
func byNode(t *testing.T, method, path string) *http.Request {
	t.Helper()
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own, err := ca.IssueNode("n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := trust.ParseCertificate(own.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, http.NoBody)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
	return r
}

// TestWithoutALeaderANodeIsToldToAskAnother, by a replica that has just started or does not know the Node yet, and not that it is nobody:
// agents leave a server that answers 503. The leader is asked once for it.
func TestWithoutALeaderANodeIsToldToAskAnother(t *testing.T) {
	log := &leaderless{Local: raftstoretest.NewLocal(state.Options{})}
	config := serverConfig(t, log)
	config.NodeKeys = auth.NewNodeKeys(config.Storage)
	bootstrap := auth.NewBootstrapTokens(config.Storage)
	config.Authenticator = auth.NewJudgedAuthenticator(time.Now, nil, config.NodeKeys, nil, nil, auth.Bearer(auth.NewTokens(bootstrap, bootstrap)))
	server, _ := startBareServer(t, config)
	log.lost = true
	token := httptest.NewRequest(http.MethodGet, "/api/v1/pods", http.NoBody)
	token.Header.Set("Authorization", "Bearer abcdef.0123456789abcdef")
	for name, r := range map[string]*http.Request{
		"node": byNode(t, http.MethodGet, "/api/v1/pods"), "watch": byNode(t, http.MethodGet, "/api/v1/pods?watch=1&timeout=5s"), "token": token,
	} {
		log.asked = 0
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		asked := 1
		if name == "token" {
			asked = 2 // by two authenticators
		}
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || log.asked != asked || !strings.Contains(w.Body.String(), "ask another server") {
			t.Errorf("%s: after %d questions %d %s", name, log.asked, w.Code, w.Body)
		}
	}
}

// TestWithoutALeaderATokenReviewSaysSo, and not that nobody knows the token, which agents would believe for a while.
func TestWithoutALeaderATokenReviewSaysSo(t *testing.T) {
	log := &leaderless{Local: raftstoretest.NewLocal(state.Options{})}
	config := serverConfig(t, log)
	config.Reviews = reviews.New(reviews.Config{Authorizer: config.Authorizer, Tokens: auth.NewTokens(auth.NewBootstrapTokens(config.Storage))})
	server, _ := startBareServer(t, config)
	for lost, want := range map[bool]int{false: http.StatusCreated, true: http.StatusServiceUnavailable} {
		log.lost = lost
		r := httptest.NewRequest(http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", strings.NewReader(
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"abcdef.0123456789abcdef"}}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, admin)))
		if w.Code != want {
			t.Errorf("lost: %v: %d %s", lost, w.Code, w.Body)
		}
	}
}

// TestWhyNobody: who is told more than that he is nobody.
func TestWhyNobody(t *testing.T) {
	busy := apierrors.NewServiceUnavailable("busy")
	for _, c := range []struct {
		err  error
		want int32
	}{
		{auth.ErrNoNode, http.StatusUnauthorized},
		{busy, http.StatusServiceUnavailable},
		{utilerrors.NewAggregate([]error{errors.New("another issuer's"), busy}), http.StatusServiceUnavailable},
		{apierrors.NewTimeoutError("late", 1), http.StatusGatewayTimeout},
		{apierrors.NewBadRequest("odd"), 0},
		{errors.New("no such token"), 0},
		{nil, 0},
	} {
		got := int32(0)
		if why := whyNobody(c.err); why != nil {
			got = why.ErrStatus.Code
		}
		if got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// TestAWatchIsJudgedAgainOnceItIsOpen: a Node that was deleted in between ended what was open then, and this watch was not.
func TestAWatchIsJudgedAgainOnceItIsOpen(t *testing.T) {
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Revoked, config.NodeKeys = new(revocation.Judge), auth.NewNodeKeys(config.Storage)
	config.Authenticator = auth.NewAuthenticator(nil, nil) // judged when the Node was there
	server, _ := startBareServer(t, config)
	ended := false
	entry := server.withEntry(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ended = r.Context().Err() != nil }))
	for path, want := range map[string]bool{"/api/v1/pods?watch=1": true, "/api/v1/pods": false} {
		entry.ServeHTTP(httptest.NewRecorder(), byNode(t, http.MethodGet, path))
		if ended != want {
			t.Errorf("%s: ended: %v, want %v", path, ended, want)
		}
	}
}
