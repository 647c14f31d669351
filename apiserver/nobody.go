package apiserver

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
)

// authenticateOnce finds out who asks. Upstream's filter asks again about a request that is nobody's, which can mean another read from the
// leader: it gets the first answer.
func (s *Server) authenticateOnce(r *http.Request) (*authenticator.Response, bool, error) {
	e, ok := r.Context().Value(entryKey{}).(*entered)
	if !ok {
		return s.config.Authenticator.AuthenticateRequest(r)
	}
	if e.nobody != nil {
		return nil, false, e.nobody
	}
	response, known, err := s.config.Authenticator.AuthenticateRequest(r)
	e.nobody = err
	return response, known, err
}

// whyNobody is what is answered to a request that is nobody's: that its user was revoked, that his name has become another's, that his Node
// is not there, or that this server cannot find out now who he is, upon which agents ask another. Nil: he is told that he is nobody.
func whyNobody(err error) *apierrors.StatusError {
	if errors.As(err, new(*revocation.Error)) || errors.Is(err, revocation.ErrAuthority) || errors.Is(err, auth.ErrNodeKey) ||
		errors.Is(err, auth.ErrNoNode) {
		return apierrors.NewUnauthorized(err.Error())
	}
	return storage.Unavailability(err)
}

// refuseNobody tells somebody whose request is nobody's why, and ends the connection of who was revoked. Others go on to next.
func (s *Server) refuseNobody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, ok := r.Context().Value(entryKey{}).(*entered)
		if !ok || whyNobody(e.nobody) == nil {
			next.ServeHTTP(w, r)
			return
		}
		why := whyNobody(e.nobody)
		if apierrors.IsUnauthorized(why) {
			s.tellRevoked(r, e.nobody)
			w.Header().Set("Connection", "close")
		}
		s.refuse(w, r, why)
	})
}
