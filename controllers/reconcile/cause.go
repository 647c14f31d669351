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
	object          metav1.Object
}

// gapKey is the context key of the gap.
type gapKey struct{}

// gap is what a write is to bring about, and what the loop saw instead.
type gap struct{ wanted, observed string }

// WithCause records that writes made under ctx follow from obj as it was read.
// The in-process transport stamps it on each write, and the log keeps it.
func WithCause(ctx context.Context, obj metav1.Object) context.Context {
	return context.WithValue(ctx, causeKey{}, cause{string(obj.GetUID()), obj.GetResourceVersion(), obj})
}

// CauseFrom returns what WithCause recorded; ok is false when nothing was.
func CauseFrom(ctx context.Context) (uid, resourceVersion string, ok bool) {
	c, ok := ctx.Value(causeKey{}).(cause)
	return c.uid, c.resourceVersion, ok
}

// CauseObject is the object that WithCause was given, nil without one. It is shared: it must not be changed, nor kept.
func CauseObject(ctx context.Context) metav1.Object {
	c, _ := ctx.Value(causeKey{}).(cause)
	return c.object
}

// WithGap says for who watches the loops what writes made under ctx are to bring about, and what there is instead. A loop whose
// cause counts replicas need not: the counts of the cause are shown.
func WithGap(ctx context.Context, wanted, observed string) context.Context {
	return context.WithValue(ctx, gapKey{}, gap{wanted, observed})
}

// GapFrom returns what WithGap recorded; both are empty if nothing was.
func GapFrom(ctx context.Context) (wanted, observed string) {
	g, _ := ctx.Value(gapKey{}).(gap)
	return g.wanted, g.observed
}
