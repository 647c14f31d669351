package differential

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// api is a kind of the clientset.
type api[T any] interface {
	Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	UpdateStatus(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
}

// create puts an object into a world.
func create[T any](w *world, kind api[T], o T) {
	if _, err := kind.Create(context.Background(), o, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// change changes an object, if it is still there.
func change[T any](w *world, kind api[T], name string, f func(o T)) {
	o, err := kind.Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil {
		f(o)
		_, err = kind.Update(context.Background(), o, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// changeStatus changes the status of an object, if it is still there.
func changeStatus[T any](w *world, kind api[T], name string, f func(o T)) {
	o, err := kind.Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil {
		f(o)
		_, err = kind.UpdateStatus(context.Background(), o, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// plain is the part of a workload that needs nothing special.
type plain struct{}

func (plain) actTime() time.Duration       { return 0 }
func (plain) ends() (end, succeed float64) { return 0.15, 0.3 }
func (plain) excuse(_, _ string) string    { return "" }
func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
func maybe[T any](g *generator, v T) *T {
	if g.chance(3) {
		return nil
	}
	return &v
}
func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }
