package apiserver

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
)

// upstreamChain is the chain of upstream's own filters.
func upstreamChain(s *Server, route http.Handler) http.Handler {
	h := s.withServices(filters.WithAuthorization(route, s.config.Authorizer, s.codecs))
	h = impersonation.WithConstrainedImpersonation(h, s.config.Authorizer, s.codecs)
	h = filters.WithAuthentication(h, s.authenticator(), filters.Unauthorized(s.codecs), nil, nil)
	h = filters.WithRequestDeadline(h, nil, nil, s.longRunning, s.codecs, requestTimeout)
	h = filters.WithWarningRecorder(h)
	h = filters.WithCacheControl(h)
	resolved := h
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := newResolver().NewRequestInfo(r)
		if err != nil {
			s.refuse(w, r, apierrors.NewBadRequest(err.Error()))
			return
		}
		resolved.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	})
	h = filters.WithRequestReceivedTimestamp(h)
	h = filters.WithAuditInit(h)
	return s.withRecovery(withoutPrivateHeaders(h))
}

// tell answers with all that a handler finds in its request.
func tell(w http.ResponseWriter, r *http.Request) {
	warning.AddWarning(r.Context(), "agent", "mind this")
	warning.AddWarning(r.Context(), "agent", "mind this") // told once
	info, _ := request.RequestInfoFrom(r.Context())
	who, _ := request.UserFrom(r.Context())
	_, received := request.ReceivedTimestampFrom(r.Context())
	_, bounded := r.Context().Deadline()
	named := string(audit.GetAuditIDTruncated(r.Context())) == w.Header().Get("Audit-Id")
	headers := slices.Sorted(maps.Keys(r.Header))
	fmt.Fprintf(w, "%+v\n%+v\nreceived %v bounded %v named %v\n%v", info, who, received, bounded, named, headers)
}

// answered is what a client can see, but what differs from one time to the next.
func answered(t *testing.T, h http.Handler, r *http.Request) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	response := w.Result()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Get("Audit-Id") == "" && response.Header.Get("Audit-Id") != "" {
		response.Header.Set("Audit-Id", "made")
	}
	text := &strings.Builder{}
	_ = response.Header.Write(text)
	return fmt.Sprintf("%d\n%s\n%s", response.StatusCode, text, body)
}

// FuzzEntryIsUpstreams: whatever asks, the own entry lets the same through as upstream's
// filters, and refuses with the same words.
func FuzzEntryIsUpstreams(f *testing.F) {
	callers := []user.Info{
		nil, admin,
		&user.DefaultInfo{Name: "carol", Groups: []string{user.AllAuthenticated}},
		&user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}},
		&user.DefaultInfo{Name: "odd", Groups: []string{user.AllUnauthenticated}},
	}
	targets := []string{
		cmPath, cmPath + "/a", cmPath + "/a?timeout=5s", cmPath + "?timeout=soon", cmPath + "?watch=true&timeout=soon", cmPath + "?watch=1", "/api/v1/pods/x/log?timeout=1s",
		"/api/v1/namespaces/d/pods/x/log", "/api/v1/watch", "/api", "/healthz", "/service/Call", "/", cmPath + "?labelSelector=a%3Db", cmPath + "?fieldSelector=%21",
	}
	methods := []string{http.MethodGet, http.MethodPost, http.MethodDelete, "BREW"}
	headers := [][2]string{
		{"Audit-Id", "mine"}, {"Authorization", "Bearer x"}, {"X-Remote-User", "root"}, {"X-Remote-Extra-Scope", "all"}, {"x-remote-extra-raw", "all"},
		{"Impersonate-User", "carol"}, {"Impersonate-Group", "system:masters"}, {"Impersonate-Uid", "7"}, {"impersonate-extra-raw", "x"},
		{"Setpoint-Fence", "9"}, {"Accept", "application/yaml"}, {"X-Remote-Other", "kept"},
	}
	for caller := range callers {
		for target := range targets {
			f.Add(caller, target, 0, 0)
			f.Add(caller, target, 1, 1<<(target%len(headers)))
		}
	}
	for header := range headers {
		f.Add(1, 1, 0, 1<<header)
		f.Add(0, 0, 0, 1<<header)
	}
	f.Fuzz(func(t *testing.T, caller, target, method, with int) {
		server, _ := newServer(t)
		server.config.Services = []Service{{Prefix: "/service/", Handler: http.HandlerFunc(tell)}}
		pick := func(i, n int) int { return int(uint(i) % uint(n)) }
		build := func() *http.Request {
			r := httptest.NewRequest(methods[pick(method, len(methods))], targets[pick(target, len(targets))], http.NoBody)
			for i, header := range headers {
				if with&(1<<i) != 0 {
					r.Header[header[0]] = []string{header[1]}
				}
			}
			if who := callers[pick(caller, len(callers))]; who != nil {
				r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
			}
			return r
		}
		want := answered(t, upstreamChain(server, http.HandlerFunc(tell)), build())
		if diff := cmp.Diff(want, answered(t, server.newChain(http.HandlerFunc(tell)), build())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestKeysAreLearned: two keys that are alike would mix up two values.
func TestKeysAreLearned(t *testing.T) {
	keys := map[any]bool{infoKey: true, receivedKey: true, userKey: true, auditKey: true, warningKey: true}
	if len(keys) != 5 || keys[nil] {
		t.Errorf("keys = %v", keys)
	}
}
