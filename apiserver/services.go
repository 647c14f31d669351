package apiserver

import (
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Service is an endpoint outside the Kubernetes API, on its port. Its requests pass the same chain: who calls is authenticated, may act as
// another where the authorizer lets him, and is recorded; Allow stands in the place of the authorizer.
type Service struct {
	// Prefix is the path it lives under, such as "/setpoint.v1.Session/". It is below none of the API's own (/api, /apis).
	Prefix  string
	Handler http.Handler
	// Allow judges the caller, after impersonation. Nil lets everybody in: the service checks its own credentials.
	Allow func(u user.Info) bool
	// Traffic is what its requests are like.
	Traffic Traffic
}

// Traffic is how long the requests of a service take, and who makes them how often.
type Traffic int

const (
	// Calls are answered soon: they have the deadline of other requests, and wait for a seat as these do.
	Calls Traffic = iota
	// Streams take their time, and wait for no seat.
	Streams
	// Parts are streams that the parts of the system hold or make all the time. One that may call and calls in its own name is not
	// recorded; everybody else is.
	Parts
)

// The annotations in which upstream's authorization tells the audit log what it decided.
const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"
)

func (s *Service) allows(u user.Info) bool { return s.Allow == nil || s.Allow(u) }

// Callers of whom refusal asks whether they may.
var (
	anyUser       user.Info = &user.DefaultInfo{Name: "anybody", Groups: []string{user.AllAuthenticated}}
	administrator user.Info = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
)

// refusal tells who may, to somebody who may not.
func (s *Service) refusal() string {
	switch {
	case s.allows(anyUser):
		return "this service is for users who prove who they are only"
	case s.allows(administrator):
		return "this service is for administrators only"
	}
	return "this service is for other parts of the control plane only"
}

// service returns the service that a path belongs to.
func (s *Server) service(path string) *Service {
	for i := range s.config.Services {
		if strings.HasPrefix(path, s.config.Services[i].Prefix) {
			return &s.config.Services[i]
		}
	}
	return nil
}

// serviceOf returns the service that a request is for. The paths of objects are not looked at.
func (s *Server) serviceOf(r *http.Request) *Service {
	if info, ok := request.RequestInfoFrom(r.Context()); ok && info.IsResourceRequest {
		return nil
	}
	return s.service(r.URL.Path)
}

// withTraffic lets the parts speak with each other at once. Whoever may not, or wants to act as another, goes the way of everybody.
func (s *Server) withTraffic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service := s.serviceOf(r)
		if service == nil || service.Traffic != Parts || impersonates(r.Header) {
			next.ServeHTTP(w, r)
			return
		}
		if who, ok := request.UserFrom(r.Context()); !ok || !service.allows(who) {
			next.ServeHTTP(w, r)
			return
		}
		service.Handler.ServeHTTP(w, r)
	})
}

// withServices hands requests to their service, if it lets their users in.
func (s *Server) withServices(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service := s.serviceOf(r)
		if service == nil {
			next.ServeHTTP(w, r)
			return
		}
		who, ok := request.UserFrom(r.Context())
		allowed := ok && service.allows(who)
		s.noteDecision(r, allowed)
		if !allowed {
			http.Error(w, service.refusal(), http.StatusForbidden)
			return
		}
		service.Handler.ServeHTTP(w, r)
	})
}

// noteDecision tells the audit log what was decided, as upstream's authorization does.
func (s *Server) noteDecision(r *http.Request, allowed bool) {
	if s.config.Audit == nil {
		return
	}
	decision, reason := "forbid", "the service does not let this user in"
	if allowed {
		decision, reason = "allow", ""
	}
	audit.AddAuditAnnotations(r.Context(), decisionAnnotation, decision, reasonAnnotation, reason)
}
