package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// longRequest is one without an end of its own, as the chain hands it on.
func longRequest(ctx context.Context, who user.Info, info *request.RequestInfo) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, cmPath, nil)
	return r.WithContext(request.WithUser(request.WithRequestInfo(ctx, info), who))
}

func watchOf(ctx context.Context, who user.Info) *http.Request {
	return longRequest(ctx, who, &request.RequestInfo{IsResourceRequest: true, Verb: "watch"})
}

// waiting is a handler that keeps its requests until they are ended.
type waiting struct {
	entered, ended chan struct{}
	end            chan struct{}
}

func (h waiting) ServeHTTP(http.ResponseWriter, *http.Request) {
	h.entered <- struct{}{}
	<-h.end
}

// sharing is a chain of shares alone, in which requests stay.
type sharing struct {
	waiting
	chain http.Handler
	open  int
}

func newSharing(t *testing.T, watches, streams shares.Limits) *sharing {
	server, _ := newServer(t)
	server.config.Shares = newShares(watches, streams)
	s := &sharing{waiting: waiting{make(chan struct{}), make(chan struct{}), make(chan struct{})}}
	s.chain = server.withShares(s.waiting)
	return s
}

// stay begins a request, which is refused or stays.
func (s *sharing) stay(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	refused := make(chan struct{})
	go func() {
		s.chain.ServeHTTP(answer, r)
		select {
		case refused <- struct{}{}:
		case <-s.end:
			s.ended <- struct{}{}
		}
	}()
	select {
	case <-s.entered:
		s.open++
		return nil
	case <-refused:
		return answer
	}
}

func (s *sharing) endAll() {
	close(s.end)
	for range s.open {
		<-s.ended
	}
}

func accountOf(namespace, name string) user.Info { return serviceaccount.UserInfo(namespace, name, "") }

// TestATenantHasAShareOfWatches: the accounts of one namespace are one tenant, and whoever is privileged does not wait for tenants.
func TestATenantHasAShareOfWatches(t *testing.T) {
	s := newSharing(t, shares.Limits{All: 8, Each: 3, Privileged: 3}, shares.Limits{All: 1, Each: 1})
	person := func(name string, groups ...string) user.Info { return &user.DefaultInfo{Name: name, Groups: groups} }
	const full = "none is left for "
	for _, step := range []struct {
		who     user.Info
		refusal string
	}{
		{who: accountOf("ten", "a")},
		{who: accountOf("ten", "b")},
		{who: accountOf("ten", "c")},
		{accountOf("ten", "d"), "too many watches on this server: 3 belong to the service accounts of namespace ten, which is its share while 3 of 8 are taken"},
		{who: person("tina")}, // is not them
		{who: person("tina")},
		{who: accountOf("eleven", "a")},
		{who: accountOf("twelve", "a")}, // there are 8 - 7 left now
		{accountOf("twelve", "a"), "1 belong to the service accounts of namespace twelve, which is its share while 7 of 8 are taken"},
		{who: person("eve")},
		{person("fay"), full + "user fay"},
		{who: person("admin", user.SystemPrivilegedGroup)},
		{who: person("admin", user.SystemPrivilegedGroup)},
		{who: person("admin", user.SystemPrivilegedGroup)},
		{person("admin", user.SystemPrivilegedGroup), "3 belong to user admin"},
		{who: person("system:node:n", user.NodesGroup)},
		{person("system:node:n"), full + "user system:node:n"}, // has not the group
		{who: accountOf("kube-system", "dns")},
		{who: person("system:kube-scheduler")},
	} {
		refused := s.stay(watchOf(t.Context(), step.who))
		switch {
		case refused == nil && step.refusal != "":
			t.Errorf("%s may watch, want: %s", step.who.GetName(), step.refusal)
		case refused != nil && (step.refusal == "" || refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") == "" ||
			!strings.Contains(refused.Body.String(), step.refusal)):
			t.Errorf("%s: %d %v %s, want: %s", step.who.GetName(), refused.Code, refused.Header(), refused.Body, step.refusal)
		}
	}
	s.endAll()
	if refused := s.chainOnce(watchOf(t.Context(), accountOf("ten", "a"))); refused.Code != http.StatusOK {
		t.Errorf("after all have ended: %d", refused.Code)
	}
}

// chainOnce lets one request through whose handler returns at once.
func (s *sharing) chainOnce(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	go func() { <-s.entered }()
	s.chain.ServeHTTP(answer, r)
	return answer
}

// TestATenantHasAShareOfStreams: of everything without an end of its own that is no watch, and of nothing else.
func TestATenantHasAShareOfStreams(t *testing.T) {
	pods := func(verb, subresource string) *request.RequestInfo {
		return &request.RequestInfo{IsResourceRequest: true, Verb: verb, Resource: "pods", Subresource: subresource}
	}
	for _, info := range []*request.RequestInfo{
		pods("get", "log"), pods("create", "exec"), pods("get", "attach"), pods("create", "portforward"), pods("get", "proxy"),
		{IsResourceRequest: true, Verb: "create", Resource: "services", Subresource: "proxy"},
		{IsResourceRequest: true, Verb: "get", Resource: "nodes", Subresource: "proxy"},
		{Verb: "proxy"},
	} {
		s := newSharing(t, shares.Limits{All: 8}, shares.Limits{All: 4, Each: 2})
		for _, name := range []string{"a", "b"} {
			if refused := s.stay(longRequest(t.Context(), accountOf("ten", name), info)); refused != nil {
				t.Errorf("%+v: %d", info, refused.Code)
			}
		}
		if refused := s.stay(longRequest(t.Context(), accountOf("ten", "c"), info)); refused == nil || refused.Code != http.StatusTooManyRequests ||
			!strings.Contains(refused.Body.String(), "too many streams through this server: 2 belong to the service accounts of namespace ten") {
			t.Errorf("a third %+v: %v", info, refused)
		}
		for _, other := range []*http.Request{
			watchOf(t.Context(), accountOf("ten", "a")),
			longRequest(t.Context(), accountOf("ten", "a"), pods("get", "")),
			longRequest(t.Context(), accountOf("eleven", "a"), info),
		} {
			if refused := s.stay(other); refused != nil {
				t.Errorf("beside %+v: %d %s", info, refused.Code, refused.Body)
			}
		}
		s.endAll()
	}
}

// TestTwelveHundredExecsOfOneUser: of so many that one user begins and never ends, all beyond his share are refused with the reason, while
// others exec and read.
func TestTwelveHundredExecsOfOneUser(t *testing.T) {
	exec := &request.RequestInfo{IsResourceRequest: true, Verb: "create", Resource: "pods", Subresource: "exec"}
	s := newSharing(t, shares.Limits{All: maxWatches, Each: maxWatchesEach},
		shares.Limits{All: maxStreams, Each: maxStreamsEach, Privileged: maxStreamsPrivileged})
	tina := &user.DefaultInfo{Name: "tina"}
	get := &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "pods"}
	refusals := 0
	for range 1200 {
		refused := s.stay(longRequest(t.Context(), tina, exec))
		if refused == nil {
			continue
		}
		refusals++
		if refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") == "" || !strings.Contains(refused.Body.String(),
			"too many streams through this server: 1000 belong to user tina, which is its share while 1000 of 4000 are taken") {
			t.Fatalf("%d %v %s", refused.Code, refused.Header(), refused.Body)
		}
	}
	if refusals != 200 {
		t.Errorf("%d of 1200 are refused", refusals)
	}
	for name, r := range map[string]*http.Request{
		"another's exec":          longRequest(t.Context(), accountOf("shop", "a"), exec),
		"an administrator's exec": longRequest(t.Context(), &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}, exec),
		"another's GET":           longRequest(t.Context(), accountOf("shop", "a"), get),
		"his own GET":             longRequest(t.Context(), tina, get),
	} {
		if refused := s.stay(r); refused != nil {
			t.Errorf("%s: %d %s", name, refused.Code, refused.Body)
		}
	}
	s.endAll()
}
