package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditheader "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/internal/cpushare"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// entered is the context of a request: one value with all that upstream's filters
// put into a chain of contexts and copies of the request, one after the other.
// Upstream's handlers find it under upstream's keys.
type entered struct {
	context.Context
	info     *request.RequestInfo
	received time.Time
	// client is from where the connection comes.
	client string
	// user is set once, by the entry, before anybody else sees the context.
	user user.Info
	// cancel ends the request before its time; nil: nobody can.
	cancel context.CancelFunc
	// lasts says that the request has no deadline of the server's.
	lasts bool
	// nobody is why it could not be found out who asks.
	nobody error
	// long is of a tenant whose requests wait for their turn to compute; nil: of nobody.
	long *cpushare.Long
	// width is how many seats the request takes, once somebody has asked.
	width flowcontrol.Noted

	auditID string
	writer  http.ResponseWriter
	// audit and warnings are upstream's, made for those requests that ask for them.
	audit, warnings made
}

// made is a value that is made when it is first asked for. Its method may be called from any goroutine.
type made struct {
	once  sync.Once
	value any
}

func (m *made) by(make func() any) any {
	m.once.Do(func() { m.value = make() })
	return m.value
}

// entryKey finds the entry itself.
type entryKey struct{}

// The keys under which upstream's functions ask.
var (
	infoKey     = keyOf(func(ctx context.Context) { request.RequestInfoFrom(ctx) })
	receivedKey = keyOf(func(ctx context.Context) { request.ReceivedTimestampFrom(ctx) })
	userKey     = keyOf(func(ctx context.Context) { request.UserFrom(ctx) })
	auditKey    = keyOf(func(ctx context.Context) { audit.AuditContextFrom(ctx) })
	warningKey  = keyOf(func(ctx context.Context) { warning.AddWarning(ctx, "", "") })
)

// keyOf learns the key with which ask looks into a context.
func keyOf(ask func(context.Context)) any {
	l := &listener{Context: context.Background()}
	ask(l)
	return l.key
}

type listener struct {
	context.Context
	key any
}

func (l *listener) Value(key any) any {
	l.key = key
	return nil
}

// Value implements context.Context.
func (e *entered) Value(key any) any {
	switch key {
	case infoKey:
		return e.info
	case userKey:
		return e.user
	case cpushare.LongKey{}:
		return e.long
	case flowcontrol.NotedKey{}:
		return &e.width
	case entryKey{}:
		return e
	case auth.ClientAddressKey{}:
		return e.client
	case receivedKey:
		return e.received
	case auditKey:
		return e.audit.by(e.newAudit)
	case warningKey:
		return e.warnings.by(e.newWarnings)
	default:
		return e.Context.Value(key)
	}
}

func (e *entered) newAudit() any {
	ctx := audit.WithAuditContext(context.Background())
	audit.WithAuditID(ctx, types.UID(e.auditID))
	return ctx.Value(auditKey)
}

func (e *entered) newWarnings() (recorder any) {
	keep := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { recorder = r.Context().Value(warningKey) })
	filters.WithWarningRecorder(keep).ServeHTTP(e.writer, new(http.Request))
	return recorder
}

// endWith ends the request when streams end, if it lasts. The function that it returns must be called.
func (e *entered) endWith(streams context.Context) (done func()) {
	e.Context, e.cancel = context.WithCancel(e.Context)
	if streams == nil || !e.lasts {
		return e.cancel
	}
	stop := context.AfterFunc(streams, e.cancel)
	return func() {
		stop()
		e.cancel()
	}
}

// withEntry tells the rest of the chain who asks for what, since when and until when.
// It does what these filters of upstream do, in their order: audit init, received
// timestamp, request info, cache control, warning recorder, request deadline and
// authentication. Requests that are not plain pass the last two as well.
func (s *Server) withEntry(next http.Handler) http.Handler {
	resolver := newResolver()
	authenticator := s.authenticator()
	next = s.whileNotRevoked(next)
	strangers := filters.WithAuthentication(next, authenticator, s.unauthorized(), nil, nil)
	impatient := filters.WithRequestDeadline(withReadDeadline(strangers), nil, nil, s.longRunning, s.codecs, requestTimeout)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &entered{Context: r.Context(), received: time.Now(), client: r.RemoteAddr, writer: w}
		e.auditID = setAuditID(w, r)
		var err error
		if e.info, err = resolver.NewRequestInfo(r); err != nil {
			s.refuse(w, r.WithContext(e), apierrors.NewBadRequest(err.Error()))
			return
		}
		setCacheControl(w)
		e.lasts = s.longRunning(r, e.info)
		patient := !strings.Contains(r.URL.RawQuery, "timeout")
		if e.lasts || !patient {
			defer e.endWith(s.config.Streams)()
		}
		if !patient {
			impatient.ServeHTTP(w, r.WithContext(e))
			return
		}
		if !e.lasts {
			e.Context, e.cancel = context.WithDeadline(e.Context, e.received.Add(requestTimeout))
			defer e.cancel()
		}
		r = r.WithContext(e)
		defer limitReading(w, r)()
		response, known, err := authenticator.AuthenticateRequest(r)
		if err != nil || !known || isAnonymous(response.User) {
			strangers.ServeHTTP(w, r)
			return
		}
		removeCredentials(r.Header)
		e.user = response.User
		next.ServeHTTP(w, r)
	})
}

// unauthorized answers who could not say who he is; the record says that somebody tried.
func (s *Server) unauthorized() http.Handler {
	refused := s.refuseNobody(filters.Unauthorized(s.codecs))
	if s.config.Audit == nil {
		return refused
	}
	return filters.WithFailedAuthenticationAudit(refused, s.config.Audit.Sink(), s.config.Audit.Policy())
}

// setAuditID returns the request's name, the client's or a new one, and answers with it.
func setAuditID(w http.ResponseWriter, r *http.Request) string {
	id := r.Header.Get(auditheader.HeaderAuditID)
	if id == "" {
		id = uuid.NewString()
	}
	w.Header().Set(auditheader.HeaderAuditID, id)
	return id
}

// setCacheControl: all answers depend on who asks.
func setCacheControl(w http.ResponseWriter) { w.Header().Set("Cache-Control", "no-cache, private") }

func isAnonymous(u user.Info) bool {
	return u.GetName() == user.Anonymous || slices.Contains(u.GetGroups(), user.AllUnauthenticated)
}

// frontProxyExtra begins the headers in which a front proxy would tell more of the user.
const frontProxyExtra = "X-Remote-Extra-"

// removeCredentials keeps from everybody behind what proved the user, or would have.
func removeCredentials(h http.Header) {
	for _, name := range []string{"Authorization", "X-Remote-User", "X-Remote-Uid", "X-Remote-Group"} {
		delete(h, name)
	}
	for name := range h {
		if hasPrefixFold(name, frontProxyExtra) {
			delete(h, name)
		}
	}
}

func hasPrefixFold(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// withImpersonation lets a request that asks for it go on as another's, if its user may
// act so: upstream's filter, with the constrained modes that are tried before the plain one.
func (s *Server) withImpersonation(next http.Handler) http.Handler {
	impersonate := impersonation.WithConstrainedImpersonation(s.unlessRevoked(next), s.config.Authorizer, s.codecs)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !impersonates(r.Header):
			next.ServeHTTP(w, r)
		case impersonationBytes(r.Header) > impersonationBytesMax:
			s.refuse(w, r, apierrors.NewBadRequest(fmt.Sprintf("the headers %s* have more than %d KiB", impersonationPrefix, impersonationBytesMax>>10)))
		case slices.ContainsFunc(r.Header[authenticationv1.ImpersonateGroupHeader], trust.ReservedGroup):
			s.refuse(w, r, apierrors.NewForbidden(schema.GroupResource{Resource: "groups"}, trust.GroupServers, errNoServer))
		default:
			impersonate.ServeHTTP(w, r)
		}
	})
}

// withAuthorization passes on what the user may do. Who is refused goes through
// upstream's filter: it judges again, and says it in its words. So does everybody when
// there is an audit log, which it tells why.
func (s *Server) withAuthorization(next http.Handler) http.Handler {
	judge := filters.WithAuthorization(next, s.config.Authorizer, s.codecs)
	if s.config.Audit != nil {
		return judge
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attributes, err := filters.GetAuthorizerAttributes(r.Context()); err == nil {
			if decision, _, _ := s.config.Authorizer.Authorize(r.Context(), attributes); decision == authorizer.DecisionAllow {
				next.ServeHTTP(w, r)
				return
			}
		}
		judge.ServeHTTP(w, r)
	})
}

var errNoServer = errors.New("nobody acts as a server of the cluster")

const (
	// impersonationPrefix begins all headers that ask to act as another.
	impersonationPrefix = "Impersonate-"
	// impersonationBytesMax is how long they may be together: upstream's filter remembers for 10 s whom somebody acted as.
	impersonationBytesMax = 64 << 10
)

func impersonationBytes(h http.Header) (bytes int) {
	for name, values := range h {
		if hasPrefixFold(name, impersonationPrefix) {
			bytes += len(name)
			for _, value := range values {
				bytes += len(value)
			}
		}
	}
	return bytes
}

func impersonates(h http.Header) bool {
	for name := range h {
		if hasPrefixFold(name, impersonationPrefix) {
			return true
		}
	}
	return false
}
