package apiserver

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Written is told of each answered write of a client at an address, for who watches this server. Texts of who and info may be as long as a
// request: what is kept of them must be copied and cut.
type Written func(who user.Info, address string, info *request.RequestInfo, code int, took time.Duration)

// unwritten are resources whose writes are not told: they say that somebody is alive, or what somebody else has told already.
var unwritten = map[string]bool{"leases": true, "events": true}

// connects are subresources that take a POST and write nothing.
var connects = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// withWritten tells of the writes of clients. The loops of this process tell of theirs themselves.
func (s *Server) withWritten(next http.Handler) http.Handler {
	if s.config.Written == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, inProcess := r.Context().Value(callerKey{}).(user.Info)
		info, ok := request.RequestInfoFrom(r.Context())
		if inProcess || !ok || !tellsOf(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		begun, answer := time.Now(), &coded{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(answer, r)
		who, _ := request.UserFrom(r.Context())
		s.config.Written(who, r.RemoteAddr, info, answer.code, time.Since(begun))
	})
}

func tellsOf(r *http.Request, info *request.RequestInfo) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return info.IsResourceRequest && !unwritten[info.Resource] && !connects[info.Subresource] && !strings.Contains(r.URL.RawQuery, "dryRun")
	}
	return false
}

// coded remembers the status of an answer.
type coded struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (c *coded) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find the connection.
func (c *coded) Unwrap() http.ResponseWriter { return c.ResponseWriter }
