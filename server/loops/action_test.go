package loops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func answers(code int, body []byte) answering {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
}

// lastOf is the last line of a log without its time and how long the action took.
func lastOf(t *testing.T, log *actions.Log) string {
	t.Helper()
	into := make([]actions.Line, 1)
	if read, _, _, _ := log.Read(log.Last(1), into); read == 0 {
		return ""
	}
	into[0].At, into[0].Took = time.Time{}, 0
	return strings.TrimPrefix(string(into[0].Append(nil)), "0001-01-01T00:00:00.000Z ")
}

func TestEachWriteIsALine(t *testing.T) {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web", UID: "u", ResourceVersion: "7"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(3))}, Status: appsv1.ReplicaSetStatus{Replicas: 1},
	}
	const because = ` because="ReplicaSet n/web, version 7"`
	generated := encoded(t, false, func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "c-" })
	for name, c := range map[string]struct {
		method, path string
		body         []byte
		answer       answering
		want         string
	}{
		"created":   {"POST", "/api/v1/namespaces/n/configmaps", encoded(t, false, nil), answers(201, nil), `wanted=3 observed=1 done="create configmaps n/c"` + because},
		"generated": {"POST", "/api/v1/namespaces/n/configmaps", generated, answers(201, encoded(t, false, nil)), `wanted=3 observed=1 done="create configmaps n/c"` + because},
		"refused":   {"PUT", "/api/v1/namespaces/n/configmaps/c", nil, answers(409, nil), `wanted=3 observed=1 done="update configmaps n/c refused: 409"` + because},
		"unanswered": {"DELETE", "/api/v1/namespaces/n/configmaps/c", nil, func(*http.Request) (*http.Response, error) { return nil, errors.New("no leader") },
			`wanted=3 observed=1 done="delete configmaps n/c refused: no leader"` + because},
		"read": {"GET", "/api/v1/namespaces/n/configmaps/c", nil, answers(200, nil), ""},
	} {
		log := &actions.Log{}
		ctx := reconcile.WithCause(within(t.Context(), "replicaset-controller"), set)
		response, err := Tap{Next: c.answer, Actions: log}.RoundTrip(request(t, c.method, c.path, c.body).WithContext(ctx))
		want := c.want
		if want != "" {
			want = "loop=replicaset-controller object=n/web " + want
		}
		if got := lastOf(t, log); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if err != nil || name != "generated" {
			continue
		}
		if rest, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(rest, encoded(t, false, nil)) {
			t.Errorf("%s: the answer is %q, %v", name, rest, err)
		}
	}
}

// within is a context of a pass of a loop.
func within(ctx context.Context, controller string) context.Context {
	loop := reconcile.OwnLoop{Controller: controller, Numbers: (&numbers.Ledger{}).Begin(controller, "queue"), Now: time.Now}
	return loop.Begin(func() string { return "n/p" }).In(ctx)
}

// binding answers bindings with an error or none.
type binding struct{ err error }

func (b binding) Bind(context.Context, *corev1.Binding) error { return b.err }

// TestEachBindingIsALine, and is counted for the loop that made it.
func TestEachBindingIsALine(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "7"}}
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Target: corev1.ObjectReference{Name: "n1"}}
	for want, err := range map[string]error{
		"create pods/binding n/p to n1":                    nil,
		"create pods/binding n/p to n1 refused: 409":       apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("taken")),
		"create pods/binding n/p to n1 refused: no leader": errors.New("no leader"),
	} {
		log := &actions.Log{}
		ctx := reconcile.WithGap(reconcile.WithCause(within(t.Context(), "default-scheduler"), pod), "a node", "none")
		if got := (BindTap{binding{err}, log}).Bind(ctx, b); !errors.Is(got, err) {
			t.Errorf("%v, want %v", got, err)
		}
		want = `loop=default-scheduler object=n/p wanted="a node" observed=none done="` + want + `" because="Pod n/p, version 7"`
		if got := lastOf(t, log); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestWhatIsNoLoops is not among the actions: events and Leases.
func TestWhatIsNoLoops(t *testing.T) {
	log := &actions.Log{}
	if _, err := (Tap{Next: answers(200, nil), Actions: log}).RoundTrip(request(t, "PUT", "/api/v1/namespaces/n/configmaps/c", nil)); err != nil {
		t.Fatal(err)
	}
	if got := lastOf(t, log); got != "" {
		t.Error(got)
	}
}

// TestGaps: a loop that knows better than the counts of its cause says so.
func TestGaps(t *testing.T) {
	log := &actions.Log{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", ResourceVersion: "7"}}
	ctx := within(t.Context(), "default-scheduler")
	ctx = reconcile.WithGap(reconcile.WithCause(ctx, pod), "a node", "0/1 nodes are available")
	if _, err := (Tap{Next: answers(200, nil), Actions: log}).RoundTrip(request(t, "PATCH", "/api/v1/namespaces/n/pods/p/status", nil).WithContext(ctx)); err != nil {
		t.Fatal(err)
	}
	want := `loop=default-scheduler object=n/p wanted="a node" observed="0/1 nodes are available" done="patch pods/status n/p" because="Pod n/p, version 7"`
	if got := lastOf(t, log); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
