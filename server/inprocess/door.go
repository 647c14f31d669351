package inprocess

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// The parts of a server as the API sees them. What a controller asks for, it asks as its own service account in place of Controllers.
var (
	Controllers = &user.DefaultInfo{Name: "system:kube-controller-manager", Groups: []string{trust.GroupServers, user.AllAuthenticated}}
	Scheduler   = &user.DefaultInfo{Name: "system:kube-scheduler", Groups: []string{trust.GroupServers, user.AllAuthenticated}}
	Server      = &user.DefaultInfo{Name: "system:setpoint", Groups: []string{trust.GroupServers, user.AllAuthenticated}}
)

var errNotOpen = errors.New("the API of this server is not built yet")

// An API gives its own server's parts a transport; apiserver.Server is one.
type API interface {
	Transport(apiserver.Caller) http.RoundTripper
	// Bind binds a pod without encoding what is asked and answered.
	Bind(context.Context, apiserver.Caller, *corev1.Binding) error
}

// Door leads to the API of this server. It may be handed out before the API is built: parts
// of the API are its clients. The zero value is a closed door; all methods may be called from
// any goroutine.
type Door struct {
	api       atomic.Pointer[API]
	clients   clients
	asked     atomic.Int64 // and not answered yet
	intercept Intercept
}

// Intercept sends a request of a loop, which user makes, with next, or does something else.
type Intercept func(user string, r *http.Request, next http.RoundTripper) (*http.Response, error)

// NewDoor returns a closed door, whose loops' requests go through intercept, if there is one.
func NewDoor(intercept Intercept) *Door { return &Door{intercept: intercept} }

// Intercepted says whether somebody sees the requests of loops.
func (d *Door) Intercepted() bool { return d.intercept != nil }

// Busy says whether a request waits for its answer. What a watch tells is no answer.
func (d *Door) Busy() bool { return d.asked.Load() > 0 }

// Open lets requests through to the API.
func (d *Door) Open(api API) { d.api.Store(&api) }

// Config is a client of this very server as the user. Writes carry the fence of the term
// (0: none) and the object that led to them.
func (d *Door) Config(u user.Info, term uint64) *rest.Config {
	return &rest.Config{
		Host:      "https://" + host,
		QPS:       -1, // the server's own loops are not held back; the log bounds what it takes
		UserAgent: fieldManager(u) + "/" + process.Version + " setpoint",
		// Whoever deletes what a namespace holds asks for deprecated kinds too.
		WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
		Transport: transport{d, apiserver.Caller{User: u, Origin: func(ctx context.Context) storage.Origin {
			return origin(ctx, term)
		}}, term != 0},
	}
}

type transport struct {
	door   *Door
	caller apiserver.Caller
	// ofLoop: a loop asks, in a term.
	ofLoop bool
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	api := t.door.api.Load()
	if api == nil {
		return nil, errNotOpen
	}
	t.door.asked.Add(1)
	defer t.door.asked.Add(-1)
	caller := t.caller
	if pass, ok := reconcile.PassFrom(r.Context()); ok && caller.User == Controllers {
		caller.User = account(pass.Account)
	}
	begun := time.Now()
	response, err := t.send(caller, r, (*api).Transport(caller))
	t.door.clients.answered(r.Method, response, begun)
	return response, err
}

func (t transport) send(caller apiserver.Caller, r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if t.ofLoop && t.door.intercept != nil {
		return t.door.intercept(caller.User.GetName(), r, next)
	}
	return next.RoundTrip(r)
}

// Binder binds pods as the scheduler, with the fence of the term.
func (d *Door) Binder(term uint64) *Binder {
	return &Binder{d, apiserver.Caller{User: Scheduler, Origin: func(ctx context.Context) storage.Origin { return origin(ctx, term) }}}
}

// Binder implements scheduler.Binder without HTTP.
type Binder struct {
	door   *Door
	caller apiserver.Caller
}

// Bind implements scheduler.Binder.
func (b *Binder) Bind(ctx context.Context, binding *corev1.Binding) error {
	api := b.door.api.Load()
	if api == nil {
		return errNotOpen
	}
	b.door.asked.Add(1)
	defer b.door.asked.Add(-1)
	begun := time.Now()
	err := (*api).Bind(ctx, b.caller, binding)
	b.door.clients.answered(http.MethodPost, answerOf(err), begun)
	return err
}

// answerOf is the response that an error of the API, or none, would have been.
func answerOf(err error) *http.Response {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return &http.Response{StatusCode: http.StatusCreated}
	case errors.As(err, &status):
		return &http.Response{StatusCode: int(status.Status().Code)}
	default:
		return nil
	}
}

// account is the user of one controller: upstream's service account, with the rights of this server.
func account(name string) user.Info {
	return &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(metav1.NamespaceSystem, name),
		Groups: append(serviceaccount.MakeGroupNames(metav1.NamespaceSystem), trust.GroupServers, user.AllAuthenticated),
	}
}

// fieldManager is under which name the loops of a user appear in managedFields: that of
// upstream's component, by which tools such as Argo CD know what is not theirs.
func fieldManager(u user.Info) string {
	switch u {
	case Controllers:
		return "kube-controller-manager"
	case Scheduler:
		return "kube-scheduler"
	}
	return "kube-apiserver"
}

func origin(ctx context.Context, term uint64) storage.Origin {
	o := storage.Origin{Fence: term}
	if uid, version, ok := reconcile.CauseFrom(ctx); ok {
		o.CauseUID = uid
		o.CauseRevision, _ = storage.ParseResourceVersion(version) // a cause without a number is no cause
	}
	return o
}
