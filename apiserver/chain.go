package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/rest/stack"
)

// privateHeaderPrefix marks headers that only parts of the system may set.
const privateHeaderPrefix = "Setpoint-"

// newChain builds what every request passes, from the outside to the route.
func (s *Server) newChain(route http.Handler) http.Handler {
	h := s.withWritten(s.withAuthorization(s.withExact(route)))
	h = s.withShares(h)
	h = s.withServices(h)
	h = s.withTurn(h)
	h = s.withFairness(h)
	h = s.withProcessor(h)
	h = s.withImpersonation(h)
	h = s.withAudit(h)
	h = s.withTraffic(h)
	h = s.withEntry(h)
	h = withoutPrivateHeaders(h)
	return s.withRecovery(h)
}

// newResolver tells what a path and method ask for.
func newResolver() *request.RequestInfoFactory {
	return &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
}

// withFairness lets clients wait in turns. The loops of this process do not wait: they
// bound themselves and must get on.
func (s *Server) withFairness(next http.Handler) http.Handler {
	if s.config.Fairness == nil {
		return next
	}
	fair := s.config.Fairness.Handler(next, s.longRunning)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, inProcess := r.Context().Value(callerKey{}).(user.Info); inProcess {
			next.ServeHTTP(w, r)
			return
		}
		fair.ServeHTTP(w, r)
	})
}

// withAudit records requests as the policy says. Without a log it costs nothing.
func (s *Server) withAudit(next http.Handler) http.Handler {
	if s.config.Audit == nil {
		return next
	}
	return filters.WithAudit(next, s.config.Audit.Sink(), s.config.Audit.Policy(), s.longRunning)
}

// longRunning requests have no deadline of the server's.
func (s *Server) longRunning(r *http.Request, info *request.RequestInfo) bool {
	switch info.Verb {
	case "watch", "proxy":
		return true
	}
	switch info.Subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return true
	}
	if info.IsResourceRequest {
		return false
	}
	service := s.service(r.URL.Path)
	return service != nil && service.Traffic != Calls
}

// withReadDeadline ends the reading of a body with the request.
func withReadDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer limitReading(w, r)()
		next.ServeHTTP(w, r)
	})
}

// limitReading ends the reading of a body that trickles in with the request's own
// deadline, and says of a body that cannot be read that this is the client's fault;
// stop must be called before the handler returns. The socket's deadline is
// only set then: to set one for each request takes a turn of its connection's loop.
func limitReading(w http.ResponseWriter, r *http.Request) (stop func()) {
	if _, bounded := r.Context().Deadline(); !bounded || r.ContentLength == 0 {
		return func() {}
	}
	r.Body = clientsBody{r.Body}
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

// clientsBody fails with a Status of 4xx, where upstream would answer 500.
type clientsBody struct{ io.ReadCloser }

func (b clientsBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: "the body did not arrive in time",
		}}
	default:
		err = apierrors.NewBadRequest("the body cannot be read: " + err.Error())
	}
	return n, err
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
			stack.ReserveRead()
		} else {
			stack.Reserve()
		}
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause) // the client must see that its stream was cut
			}
			s.config.Logger.Error(
				"request panicked",
				"method",
				r.Method,
				"path",
				r.URL.Path,
				"panic",
				fmt.Sprint(cause),
				"stack",
				string(debug.Stack()),
			)
			s.refuse(w, r, apierrors.NewInternalError(fmt.Errorf("the server failed on this request; its log says more")))
		}()
		next.ServeHTTP(w, r)
	})
}
