package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/rest"
)

// privateHeaderPrefix marks headers that only parts of the system may set.
const privateHeaderPrefix = "Setpoint-"

// newChain builds what every request passes, from the outside to the route.
func (s *Server) newChain(route http.Handler) http.Handler {
	h := s.withAuthorization(route)
	h = s.withInFlightLimit(h)
	h = s.withServices(h)
	h = s.withEntry(h)
	h = withoutPrivateHeaders(h)
	return s.withRecovery(h)
}

// newResolver tells what a path and method ask for.
func newResolver() *request.RequestInfoFactory {
	return &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
}

// withInFlightLimit answers 429 when too many requests are under way. The loops of
// this process are not counted: they bound themselves and must get on.
func (s *Server) withInFlightLimit(next http.Handler) http.Handler {
	slots := make(chan struct{}, maxInFlight)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		_, inProcess := r.Context().Value(callerKey{}).(user.Info)
		if !ok || !info.IsResourceRequest || inProcess || s.longRunning(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			s.refuse(w, r, apierrors.NewTooManyRequests("too many requests are under way", tooManyRetryAfterSeconds))
		}
	})
}

const (
	// maxInFlight bounds the requests of clients that are under way at once; it is
	// what upstream allows reads and writes together.
	maxInFlight              = 600
	tooManyRetryAfterSeconds = 1
)

// withServices hands requests of the parts among each other to their service.
func (s *Server) withServices(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service := s.service(r.URL.Path)
		if service == nil {
			next.ServeHTTP(w, r)
			return
		}
		if service.Allow != nil {
			if u, ok := request.UserFrom(r.Context()); !ok || !service.Allow(u) {
				http.Error(w, "this service is for other parts of the control plane only", http.StatusForbidden)
				return
			}
		}
		service.Handler.ServeHTTP(w, r)
	})
}

// longRunning requests have no deadline of the server's.
func (s *Server) longRunning(r *http.Request, info *request.RequestInfo) bool {
	switch info.Verb {
	case "watch", "proxy":
		return true
	}
	switch info.Subresource {
	case "log", "exec", "attach", "portforward":
		return true
	}
	return !info.IsResourceRequest && s.service(r.URL.Path) != nil
}

// withReadDeadline ends the reading of a body with the request.
func withReadDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer limitReading(w, r)()
		next.ServeHTTP(w, r)
	})
}

// limitReading ends the reading of a body that trickles in with the request's own
// deadline; stop must be called before the handler returns. The socket's deadline is
// only set then: to set one for each request takes a turn of its connection's loop.
func limitReading(w http.ResponseWriter, r *http.Request) (stop func()) {
	if _, bounded := r.Context().Deadline(); !bounded || r.ContentLength == 0 {
		return func() {}
	}
	ended := make(chan struct{})
	cancel := context.AfterFunc(r.Context(), func() {
		defer close(ended)
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return func() {
		if !cancel() {
			<-ended
		}
	}
}

// withoutPrivateHeaders strips what a client must not be able to claim.
func withoutPrivateHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(name, privateHeaderPrefix) {
				r.Header.Del(name)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// withRecovery turns a panic into 500 for this one request.
func (s *Server) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			rest.ReserveReadStack()
		} else {
			rest.ReserveStack()
		}
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler {
				panic(cause) // the client must see that its stream was cut
			}
			s.config.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			s.refuse(w, r, apierrors.NewInternalError(fmt.Errorf("the server failed on this request; its log says more")))
		}()
		next.ServeHTTP(w, r)
	})
}
