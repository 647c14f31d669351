package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// privateHeaderPrefix marks headers that only parts of the system may set.
const privateHeaderPrefix = "Setpoint-"

// newChain builds what every request passes, from the outside to the route.
func (s *Server) newChain() http.Handler {
	h := http.Handler(http.HandlerFunc(s.route))
	h = filters.WithAuthorization(h, s.config.Authorizer, s.codecs)
	h = withDeadline(h)
	h = s.withServices(h)
	h = filters.WithAuthentication(h, s.authenticator(), filters.Unauthorized(s.codecs), nil, nil)
	h = filters.WithWarningRecorder(h)
	h = filters.WithCacheControl(h)
	h = filters.WithRequestInfo(h, requestInfo())
	h = filters.WithRequestReceivedTimestamp(h)
	h = filters.WithAuditInit(h)
	h = withoutPrivateHeaders(h)
	return s.withRecovery(h)
}

func requestInfo() request.RequestInfoResolver {
	return &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
}

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
func longRunning(info *request.RequestInfo) bool {
	switch info.Verb {
	case "watch", "proxy":
		return true
	}
	switch info.Subresource {
	case "log", "exec", "attach", "portforward":
		return true
	}
	return false
}

func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && longRunning(info) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
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
		defer func() {
			cause := recover()
			if cause == nil || cause == http.ErrAbortHandler {
				return
			}
			s.config.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			s.refuse(w, r, apierrors.NewInternalError(fmt.Errorf("the server failed on this request; its log says more")))
		}()
		next.ServeHTTP(w, r)
	})
}
