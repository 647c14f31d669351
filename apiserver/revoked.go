package apiserver

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/revocation"
)

// tellRevoked logs that somebody still tries, now and then.
func (s *Server) tellRevoked(r *http.Request, err error) {
	revoked, ok := errors.AsType[*revocation.Error](err)
	if !ok {
		return
	}
	if skipped, tell := revoked.Tell(time.Now()); tell {
		s.config.Logger.Warn("somebody who was revoked tries to come in", "who", revoked.Target(), "address", r.RemoteAddr, "skipped", skipped)
	}
}

// whileNotRevoked ends requests that last or have a body when their user is revoked. Others have their answer at once.
func (s *Server) whileNotRevoked(next http.Handler) http.Handler {
	if s.config.Revoked == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, inProcess := r.Context().Value(callerKey{}).(user.Info)
		if who, known := request.UserFrom(r.Context()); known && !inProcess {
			defer s.endIfRevoked(w, r, auth.IdentityOf(r, who))()
		}
		next.ServeHTTP(w, r)
	})
}

// endIfRevoked ends the request, and the reading of its body, when somebody is revoked. The function that it returns must be called.
func (s *Server) endIfRevoked(w http.ResponseWriter, r *http.Request, who revocation.Identity) (done func()) {
	e, ok := r.Context().Value(entryKey{}).(*entered)
	if !ok || e.cancel == nil || !e.lasts && r.ContentLength == 0 {
		return func() {}
	}
	end := func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // who cannot, has no reader that waits
		e.cancel()
	}
	done = s.config.Revoked.Opened(who, end)
	if s.config.NodeKeys.Judge(r, who) != nil { // his Node was deleted since he was judged, before this was noted as open
		end()
	}
	return done
}

// unlessRevoked lets nobody act as a user who was revoked.
func (s *Server) unlessRevoked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, known := request.UserFrom(r.Context()); known {
			id := revocation.Identity{User: who.GetName()}
			if err := s.config.Revoked.Revoked(id); err != nil {
				s.refuse(w, r, apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, id.User, err))
				return
			}
			defer s.endIfRevoked(w, r, id)()
		}
		next.ServeHTTP(w, r)
	})
}
