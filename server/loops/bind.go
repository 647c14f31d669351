package loops

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
)

// BindTap is a scheduler.Binder that is to Next what Tap is to a transport.
type BindTap struct {
	Next interface {
		Bind(ctx context.Context, b *corev1.Binding) error
	}
	// Actions take the bindings; nil keeps none.
	Actions *actions.Log
}

// Bind implements scheduler.Binder.
func (t BindTap) Bind(ctx context.Context, b *corev1.Binding) error {
	pass, ok := reconcile.PassFrom(ctx)
	if !ok {
		return t.Next.Bind(ctx, b)
	}
	begun := time.Now()
	err := t.Next.Bind(ctx, b)
	object := "pods/binding " + b.Namespace + "/" + b.Name
	if err == nil {
		pass.Wrote(object, maphash.String(seed, b.Target.Name))
	}
	line := boundLine(ctx, pass, begun, object+" to "+b.Target.Name, err)
	pass.Did(line)
	t.Actions.Add(line)
	return err
}

func boundLine(ctx context.Context, pass reconcile.Pass, begun time.Time, object string, err error) actions.Line {
	now := time.Now()
	line := actions.Line{
		At: now, Took: now.Sub(begun), Loop: pass.Controller, Key: pass.Key, Verb: "create", Object: object, Code: http.StatusCreated,
	}
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		line.Code = int(status.Status().Code)
	case err != nil:
		line.Code, line.Failure = 0, err.Error()
	}
	because(ctx, &line)
	return line
}
