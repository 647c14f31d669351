package apiserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

type binding func(context.Context, *corev1.Binding) error

// noBindingsTo refuses bindings to a node.
type noBindingsTo string

func (n noBindingsTo) Handles(o admission.Operation) bool { return o == admission.Create }

func (n noBindingsTo) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	b, ok := a.GetObject().(*corev1.Binding)
	if ok && a.GetSubresource() == "binding" && b.Target.Name == string(n) {
		return admission.NewForbidden(a, errors.New("not there"))
	}
	return nil
}

// TestBothWaysToBind: a binding that comes as an object does and answers what one in a body does.
func TestBothWaysToBind(t *testing.T) {
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Admission = noBindingsTo("closed")
	server, client := startServer(t, config)
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}} }
	for name, c := range map[string]struct {
		change  func(*corev1.Pod)
		binding func(*corev1.Binding)
		caller  *user.DefaultInfo
		again   bool
		want    string
	}{
		"bound":        {},
		"twice":        {again: true, want: "already assigned to node"},
		"gated":        {change: gated, want: "non-empty .spec.schedulingGates"},
		"another uid":  {binding: func(b *corev1.Binding) { b.UID = "other" }, want: "UID in precondition"},
		"no pod":       {binding: func(b *corev1.Binding) { b.Name = "none" }, want: `pods "none" not found`},
		"no namespace": {binding: func(b *corev1.Binding) { b.Namespace = "none" }, want: `pods "p" not found`},
		"no target":    {binding: func(b *corev1.Binding) { b.Target.Name = "" }, want: "target.name: Required value"},
		"impossible":   {binding: func(b *corev1.Binding) { b.Target.Name = "Not_A Node/.." }, want: `target.name: Invalid value: "Not_A Node/.."`},
		"not admitted": {binding: func(b *corev1.Binding) { b.Target.Name = "closed" }, want: "not there"},
		"forbidden":    {caller: &user.DefaultInfo{Name: "eve", Groups: []string{user.AllAuthenticated}}, want: `User "eve" cannot create resource "pods/binding"`},
		"annotations":  {binding: func(b *corev1.Binding) { b.Annotations = map[string]string{"a": "b"} }},
	} {
		t.Run(name, func(t *testing.T) {
			caller := admin
			if c.caller != nil {
				caller = c.caller
			}
			asked, err := kubernetes.NewForConfig(configFor(server, caller))
			if err != nil {
				t.Fatal(err)
			}
			bound := func(how binding) (pod *corev1.Pod, err error) {
				created := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				}
				if c.change != nil {
					c.change(created)
				}
				if created, err = client.CoreV1().Pods("default").Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				wanted := func() *corev1.Binding {
					b := &corev1.Binding{
						ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: created.UID},
						Target:     corev1.ObjectReference{Kind: "Node", Name: "n"},
					}
					if c.binding != nil {
						c.binding(b)
					}
					return b
				}
				if c.again {
					if err := how(t.Context(), wanted()); err != nil {
						t.Fatal(err)
					}
				}
				refused := how(t.Context(), wanted())
				pod = mustDo[corev1.Pod](t, server, call{path: podPath + "/p"})
				if err := client.CoreV1().Pods("default").Delete(t.Context(), "p", *metav1.NewDeleteOptions(0)); err != nil {
					t.Fatal(err)
				}
				return pod, refused
			}
			encoded, encodedErr := bound(func(ctx context.Context, b *corev1.Binding) error {
				return asked.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
			})
			typed, typedErr := bound(func(ctx context.Context, b *corev1.Binding) error {
				return server.Bind(ctx, Caller{User: caller}, b)
			})
			if c.want == "" && typedErr != nil || c.want != "" && !strings.Contains(fmt.Sprint(typedErr), c.want) {
				t.Errorf("%v, want %q", typedErr, c.want)
			}
			if got, want := withoutPodUID(typedErr, typed), withoutPodUID(encodedErr, encoded); !reflect.DeepEqual(got, want) {
				t.Errorf("typed %+v\nencoded %+v", got, want)
			}
			if !reflect.DeepEqual(typed.Annotations, encoded.Annotations) || typed.Spec.NodeName != encoded.Spec.NodeName ||
				(typed.Spec.NodeName == "n") != (c.want == "" || c.again) {
				t.Errorf("typed %+v\nencoded %+v", typed, encoded)
			}
		})
	}
}

// withoutPodUID is the Status of an error, apart from what differs between two pods of the same name.
func withoutPodUID(err error, pod *corev1.Pod) (status metav1.Status) {
	var s apierrors.APIStatus
	if errors.As(err, &s) {
		status = s.Status()
		status.Message = strings.ReplaceAll(status.Message, string(pod.UID), "UID")
		status.ListMeta, status.TypeMeta = metav1.ListMeta{}, metav1.TypeMeta{}
	}
	return status
}

// TestABindingsLabels: they replace the pod's, which may say where an earlier pod was.
func TestABindingsLabels(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: `{"metadata":{"name":"p","labels":{"zone":"old","app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`})
	mustDo[metav1.Status](t, server, call{method: "POST", path: podPath + "/p/binding", body: `{"metadata":{"name":"p","labels":{"zone":"new"}},"target":{"kind":"Node","name":"n"}}`})
	want := map[string]string{"zone": "new", "app": "a"}
	if got := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"}).Labels; !reflect.DeepEqual(got, want) {
		t.Errorf("labels = %v", got)
	}
}

// TestABindingsOrigin: it carries the fence of its caller, and ends with its context.
func TestABindingsOrigin(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Target: corev1.ObjectReference{Name: "n"}}
	stale := Caller{User: admin, Origin: func(context.Context) storage.Origin { return storage.Origin{Fence: 7} }}
	if err := server.Bind(t.Context(), stale, binding); err == nil || apierrors.IsInternalError(err) {
		t.Errorf("with the fence of a term that is not: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Bind(ended, Caller{User: admin}, binding); err == nil {
		t.Error("bound for a caller that has gone")
	}
	if got := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"}).Spec.NodeName; got != "" {
		t.Errorf("it is on %s", got)
	}
}

// TestABindingIsAudited as one that comes in a body is.
func TestABindingIsAudited(t *testing.T) {
	server, recorded := newAuditedServer(t, wholeAnswers)
	client := clientFor(t, server)
	told := func(how binding) string {
		mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
		recorded.take()
		b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
		if err := how(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		e := one(t, recorded.take())
		if err := client.CoreV1().Pods("default").Delete(t.Context(), "p", *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %s by %s: %+v %d\n%s\n%s", e.Verb, e.RequestURI, e.User.Username, *e.ObjectRef, e.ResponseStatus.Code, inJSON(e.RequestObject), inJSON(e.ResponseObject))
	}
	encoded := told(func(ctx context.Context, b *corev1.Binding) error {
		return client.CoreV1().Pods("default").Bind(ctx, b, metav1.CreateOptions{})
	})
	typed := told(func(ctx context.Context, b *corev1.Binding) error { return server.Bind(ctx, Caller{User: admin}, b) })
	if typed != encoded {
		t.Errorf("typed %s\nencoded %s", typed, encoded)
	}
}
