package rest

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/propagation"
	"github.com/setpoint-io/setpoint/apiserver/rest/stack"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Delete implements rest.GracefulDeleter. The second result is true if the
// object is gone, false if it was only marked.
func (s *Store) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	stack.Reserve()
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	s.warnOfOrphans(ctx, options)
	gone := false
	obj, err := s.write(ctx, name, options.DryRun, func(v *storage.View) (*storage.Change, error) {
		if v.Current == nil {
			return nil, apierrors.NewNotFound(s.kind.GroupResource(), name)
		}
		if err := s.protected(v.Current.Object()); err != nil {
			return nil, err
		}
		change, err := s.decideDelete(ctx, v, validate, options.DeepCopy())
		gone = change != nil && change.Delete
		return change, err
	})
	if err != nil {
		return nil, false, err
	}
	switch {
	case gone:
		return s.deletedAnswer(obj), true, nil
	case s.ends(obj):
		return s.end(ctx, obj)
	}
	return obj, false, nil
}

// ends reports whether nothing keeps an object that is marked.
func (s *Store) ends(obj resource.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return s.kind.GracefulDelete != nil && obj.GetDeletionTimestamp() != nil && grace != nil && *grace == 0 &&
		len(obj.GetFinalizers()) == 0 && (s.kind.Finalizing == nil || !s.kind.Finalizing(obj))
}

// end deletes an object that was marked to end at once. Upstream writes both too: operators act on the mark, and the last event of a watch
// is too late for that. Who deletes it meanwhile is welcome.
func (s *Store) end(ctx context.Context, marked resource.Object) (runtime.Object, bool, error) {
	obj, gone, err := s.Delete(ctx, marked.GetName(), s.ifStill(marked, nil), &metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if apierrors.IsNotFound(err) {
		return s.deletedAnswer(marked), true, nil
	}
	return obj, gone, err
}

// ifStill asks validate about the object that was seen; another one of its name counts as none. An UID among the preconditions would
// make that a conflict, which also answers a write whose leadership has ended: the object is there then.
func (s *Store) ifStill(seen resource.Object, validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, now runtime.Object) error {
		switch {
		case now.(resource.Object).GetUID() != seen.GetUID():
			return apierrors.NewNotFound(s.kind.GroupResource(), seen.GetName())
		case validate == nil:
			return nil
		}
		return validate(ctx, now)
	}
}

// warnOfOrphans tells who says nothing what will become of dependents.
func (s *Store) warnOfOrphans(ctx context.Context, options *metav1.DeleteOptions) {
	if s.kind.OrphanWarning != "" && options.PropagationPolicy == nil && options.OrphanDependents == nil {
		warning.AddWarning(ctx, "", s.kind.OrphanWarning)
	}
}

// protected refuses to delete what the kind says has to stay.
func (s *Store) protected(obj resource.Object) error {
	if s.kind.Protected == nil {
		return nil
	}
	if why := s.kind.Protected(obj); why != "" {
		return apierrors.NewForbidden(s.kind.GroupResource(), obj.GetName(), errors.New(why))
	}
	return nil
}

// beforeDelete is upstream's, but by the cluster's time: upstream's marks the object by the process's.
func (s *Store) beforeDelete(ctx context.Context, obj resource.Object, options *metav1.DeleteOptions) (graceful, pending bool, err error) {
	before := obj.GetDeletionTimestamp()
	graceful, pending, err = rest.BeforeDelete(s.strategy.deleteStrategy(), ctx, obj, options)
	now, after := metav1.NewTime(s.table.Now()), obj.GetDeletionTimestamp()
	switch {
	case after == nil || after.Equal(before):
	case before == nil:
		now.Time = now.Add(time.Duration(*obj.GetDeletionGracePeriodSeconds()) * time.Second)
		obj.SetDeletionTimestamp(&now)
	case after.Before(&now):
		obj.SetDeletionTimestamp(&now)
	}
	return graceful, pending, err
}

func (s *Store) decideDelete(ctx context.Context, v *storage.View, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (*storage.Change, error) {
	obj := v.Current.Copy()
	graceful, pending, err := s.beforeDelete(ctx, obj, options)
	if err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, v.Current.Copy()); err != nil {
			return nil, err
		}
	}
	if pending {
		return nil, nil // it may only end sooner, never differently
	}
	dependents := propagation.Kind{None: s.kind.NoDependents, OrphanByDefault: s.kind.OrphanByDefault}
	finalizers := dependents.Finalizers(obj.GetFinalizers(), options)
	changed := !slices.Equal(finalizers, obj.GetFinalizers())
	obj.SetFinalizers(finalizers)
	held := len(finalizers) > 0 || (s.kind.Finalizing != nil && s.kind.Finalizing(obj))
	switch {
	case graceful && (held || *options.GracePeriodSeconds > 0):
		return &storage.Change{Object: obj}, nil
	case held && s.alreadyMarked(obj) && !changed:
		return nil, nil
	case held:
		s.markDeleted(obj)
		return &storage.Change{Object: obj}, nil
	case graceful && len(options.DryRun) == 0 && v.Current.Object().GetDeletionTimestamp() == nil:
		return &storage.Change{Object: obj}, nil // whoever watches sees the mark before the end
	case graceful:
		return s.deletion(v, obj) // shows when it ended
	default:
		return s.deletion(v, nil)
	}
}

// deletion removes the current object and gives back what it held. The client is shown
// another state of it if there is one.
func (s *Store) deletion(v *storage.View, shown resource.Object) (*storage.Change, error) {
	change, old := &storage.Change{Object: shown, Delete: true}, v.Current.Object()
	if s.allocate != nil {
		var err error
		if _, change.Releases, err = s.allocate(v, nil, v.Current.Copy()); err != nil {
			return nil, err
		}
	}
	return s.charged(v, change, nil, old)
}

func (s *Store) alreadyMarked(obj resource.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return obj.GetDeletionTimestamp() != nil && (s.kind.MarkDeleted != nil || grace != nil && *grace == 0)
}

// markDeleted marks an object that is still held, in the kind's way if it has one.
func (s *Store) markDeleted(obj resource.Object) {
	now := metav1.NewTime(s.table.Now())
	if s.kind.MarkDeleted != nil {
		if obj.GetDeletionTimestamp() == nil {
			obj.SetDeletionTimestamp(&now)
		}
		s.kind.MarkDeleted(obj)
		return
	}
	if old := obj.GetDeletionTimestamp(); old == nil || old.After(now.Time) {
		if old == nil && obj.GetGeneration() > 0 {
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
		obj.SetDeletionTimestamp(&now)
	}
	obj.SetDeletionGracePeriodSeconds(new(int64))
}

// deletedAnswer is the body of a deletion that is complete.
func (s *Store) deletedAnswer(obj resource.Object) runtime.Object {
	if s.kind.ReturnDeleted {
		return obj
	}
	return &metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: obj.GetName(), UID: obj.GetUID(),
			Group: s.kind.GroupVersionKind.Group, Kind: s.kind.Plural,
		},
	}
}

// DeleteCollection implements rest.CollectionDeleter. Objects that go away
// meanwhile are no error.
func (s *Store) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
	o *internalversion.ListOptions) (runtime.Object, error) {
	page, err := s.page(ctx, asOf(o))
	if err != nil {
		return nil, err
	}
	if options != nil {
		s.warnOfOrphans(ctx, options)
	}
	for _, item := range page.Items {
		if err := s.deleteListed(ctx, item.Object(), validate, options.DeepCopy()); err != nil {
			return nil, err
		}
	}
	return s.list(page, page.Items)
}

// asOf reads a resourceVersion without a match as upstream does, which lists what it
// deletes in pages: what was there at that revision, and nothing newer.
func asOf(o *internalversion.ListOptions) *internalversion.ListOptions {
	if o.ResourceVersion == "" || o.ResourceVersion == "0" || o.ResourceVersionMatch != "" || o.Continue != "" {
		return o
	}
	exact := o.DeepCopy()
	exact.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	return exact
}

// deleteListed deletes an object that a list showed, never its successor of the
// same name.
func (s *Store) deleteListed(ctx context.Context, listed resource.Object, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) error {
	_, _, err := s.Delete(ctx, listed.GetName(), s.ifStill(listed, validate), options)
	if apierrors.IsNotFound(err) {
		return nil // gone, or replaced, meanwhile
	}
	return err
}
