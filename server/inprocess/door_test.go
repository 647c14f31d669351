package inprocess

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// anAPI answers 404 and remembers who called.
type anAPI struct {
	caller apiserver.Caller
	fence  uint64
	cause  string
	agent  string
}

func (a *anAPI) Transport(c apiserver.Caller) http.RoundTripper {
	a.caller = c
	return a
}

func (a *anAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	origin := a.caller.Origin(r.Context())
	a.fence, a.cause, a.agent = origin.Fence, string(origin.CauseUID), r.UserAgent()
	w := httptest.NewRecorder()
	http.NotFound(w, r)
	return w.Result(), nil
}

func (a *anAPI) Bind(ctx context.Context, c apiserver.Caller, b *corev1.Binding) error {
	a.caller, a.fence = c, c.Origin(ctx).Fence
	return apierrors.NewConflict(corev1.Resource("pods"), b.Name, errors.New("it has a node"))
}

// TestBinder: bindings come as the scheduler's, with the fence, and are counted as requests.
func TestBinder(t *testing.T) {
	var door Door
	binder := door.Binder(7)
	if err := binder.Bind(t.Context(), &corev1.Binding{}); !errors.Is(err, errNotOpen) {
		t.Errorf("through a closed door: %v", err)
	}
	api := &anAPI{}
	door.Open(api)
	if err := binder.Bind(t.Context(), &corev1.Binding{}); !apierrors.IsConflict(err) || api.caller.User != Scheduler || api.fence != 7 {
		t.Errorf("%v, as %v with fence %d", err, api.caller.User, api.fence)
	}
	if got := testutil.ToFloat64(door.clients.total.WithLabelValues("409", http.MethodPost, host)); got != 1 {
		t.Errorf("%v requests were counted", got)
	}
}

func TestDoor(t *testing.T) {
	var door Door
	client, err := kubernetes.NewForConfig(door.Config(Scheduler, 7))
	if err != nil {
		t.Fatal(err)
	}
	get := func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("n").Get(ctx, "p", metav1.GetOptions{})
		return err
	}
	if err := get(t.Context()); !errors.Is(err, errNotOpen) {
		t.Errorf("through a closed door: %v", err)
	}
	api := &anAPI{}
	door.Open(api)
	cause := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "5"}}
	if err := get(reconcile.WithCause(t.Context(), cause)); err == nil || errors.Is(err, errNotOpen) {
		t.Errorf("through an open door: %v", err)
	}
	if api.caller.User != Scheduler || api.fence != 7 || api.cause != "u" {
		t.Errorf("it came as %v with fence %d because of %q", api.caller.User, api.fence, api.cause)
	}
	if want := "kube-scheduler/"; len(api.agent) < len(want) || api.agent[:len(want)] != want {
		t.Errorf("its field manager is that of %q", api.agent)
	}
}
