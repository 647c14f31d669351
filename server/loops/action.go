package loops

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
)

// verbs are what the methods of writes are called.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// action is the line of one write. It copies a few words; nothing is formatted.
func action(
	r *http.Request, pass reconcile.Pass, begun time.Time, object string, response *http.Response, err error,
) actions.Line {
	now := time.Now()
	line := actions.Line{
		At: now, Took: now.Sub(begun), Loop: pass.Controller, Key: pass.Key, Verb: verbs[r.Method], Object: object,
	}
	if err != nil {
		line.Failure = err.Error()
	} else {
		line.Code = response.StatusCode
	}
	if object == "" && r.Method == http.MethodPost && line.Code/100 == 2 {
		line.Object = named(r, response)
	}
	because(r.Context(), &line)
	return line
}

// because completes a line with the object that led to the write, and the gap that it closes.
func because(ctx context.Context, line *actions.Line) {
	cause := reconcile.CauseObject(ctx)
	if cause == nil {
		return
	}
	line.Cause = actions.Cause{
		Kind: kindOf(cause), Namespace: cause.GetNamespace(), Name: cause.GetName(), Version: cause.GetResourceVersion(),
	}
	if wanted, observed := reconcile.GapFrom(ctx); wanted != "" || observed != "" {
		line.Wanted, line.Observed = actions.Text(wanted), actions.Text(observed)
	} else {
		line.Wanted, line.Observed = counted(cause)
	}
}

// named is what was written, with the name that the server chose: it stands in the answer, which can still be read afterwards.
func named(r *http.Request, response *http.Response) string {
	answer, err := io.ReadAll(response.Body)
	rest := io.Reader(bytes.NewReader(answer))
	if err != nil {
		rest = io.MultiReader(rest, broken{err}) // the client gets the error at the same place
	}
	response.Body = readCloser{rest, response.Body}
	return written(r, answer)
}

type readCloser struct {
	io.Reader
	io.Closer
}

// broken is a reader that ends with an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// kindOf is the kind of an object: caches hold them without.
func kindOf(o metav1.Object) string { return reflect.Indirect(reflect.ValueOf(o)).Type().Name() }

// counted are the replicas that the cause wants, and those that its status counts.
func counted(cause metav1.Object) (wanted, observed actions.Amount) {
	switch o := cause.(type) {
	case *appsv1.Deployment:
		return optional(o.Spec.Replicas), actions.Number(o.Status.AvailableReplicas)
	case *appsv1.ReplicaSet:
		return optional(o.Spec.Replicas), actions.Number(o.Status.Replicas)
	case *appsv1.StatefulSet:
		return optional(o.Spec.Replicas), actions.Number(o.Status.Replicas)
	case *appsv1.DaemonSet:
		return actions.Number(o.Status.DesiredNumberScheduled), actions.Number(o.Status.CurrentNumberScheduled)
	case *corev1.ReplicationController:
		return optional(o.Spec.Replicas), actions.Number(o.Status.Replicas)
	case *batchv1.Job:
		return optional(o.Spec.Completions), actions.Number(o.Status.Succeeded)
	}
	return actions.Amount{}, actions.Amount{}
}

func optional(n *int32) actions.Amount {
	if n == nil {
		return actions.Amount{}
	}
	return actions.Number(*n)
}
