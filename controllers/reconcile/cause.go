package reconcile

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// causeKey is the context key of the cause.
type causeKey struct{}

// cause is the object, at one version, whose state led to a write.
type cause struct {
	uid             string
	resourceVersion string
}

// WithCause records that writes made under ctx follow from obj as it was read.
// The in-process transport stamps it on each write, and the log keeps it.
func WithCause(ctx context.Context, obj metav1.Object) context.Context {
	return context.WithValue(ctx, causeKey{}, cause{string(obj.GetUID()), obj.GetResourceVersion()})
}

// CauseFrom returns what WithCause recorded; ok is false when nothing was.
func CauseFrom(ctx context.Context) (uid, resourceVersion string, ok bool) {
	c, ok := ctx.Value(causeKey{}).(cause)
	return c.uid, c.resourceVersion, ok
}
