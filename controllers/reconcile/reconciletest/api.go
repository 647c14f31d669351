package reconciletest

import (
	"maps"
	"reflect"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	ktesting "k8s.io/client-go/testing"
)

func (w *World) onCreate(a ktesting.Action) (bool, runtime.Object, error) {
	create := a.(ktesting.CreateAction)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ns, ok := create.GetObject().(*corev1.Namespace); ok && a.GetSubresource() == "finalize" {
		w.note(a, ns.Name)
		return w.finalize(a, ns)
	}
	m := must(meta.Accessor(create.GetObject()))
	w.born(m)
	w.note(a, m.GetName())
	if a.GetSubresource() != "" {
		return false, nil, w.changed(nil)
	}
	// Stored before the next object gets its version: informers pass over versions that come late.
	if err := w.changed(w.Client.Tracker().Create(a.GetResource(), create.GetObject(), a.GetNamespace())); err != nil {
		return true, nil, err
	}
	created, err := w.Client.Tracker().Get(a.GetResource(), a.GetNamespace(), m.GetName())
	return true, created, err
}

// finalize is how the fake clientset sends the finalize subresource.
func (w *World) finalize(a ktesting.Action, ns *corev1.Namespace) (bool, runtime.Object, error) {
	found, err := w.Client.Tracker().Get(a.GetResource(), "", ns.Name)
	if err != nil {
		return true, nil, err
	}
	return w.store(a, found, merged(found, ns, a.GetSubresource()))
}

// onUpdate refuses stale versions, lets /status change status only and the main
// endpoint everything else, and ignores updates that change nothing.
func (w *World) onUpdate(a ktesting.Action) (bool, runtime.Object, error) {
	update := a.(ktesting.UpdateAction)
	w.mu.Lock()
	defer w.mu.Unlock()
	next := must(meta.Accessor(update.GetObject()))
	w.note(a, next.GetName())
	found, err := w.Client.Tracker().Get(a.GetResource(), a.GetNamespace(), next.GetName())
	if err != nil {
		return true, nil, err
	}
	if rv := next.GetResourceVersion(); rv != "" && rv != must(meta.Accessor(found)).GetResourceVersion() {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), next.GetName(), nil)
	}
	return w.store(a, found, merged(found, update.GetObject(), a.GetSubresource()))
}

func (w *World) onPatch(a ktesting.Action) (bool, runtime.Object, error) {
	patch := a.(ktesting.PatchAction)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(a, patch.GetName())
	found, err := w.Client.Tracker().Get(a.GetResource(), a.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	was := must(json(found))
	apply := strategicpatch.StrategicMergePatch
	if patch.GetPatchType() == types.MergePatchType {
		apply = mergePatch
	}
	body, err := apply(was, patch.GetPatch(), found)
	if err != nil {
		return true, nil, apierrors.NewBadRequest(err.Error())
	}
	next := reflect.New(reflect.TypeOf(found).Elem()).Interface().(runtime.Object)
	if err := unjson(body, next); err != nil {
		return true, nil, apierrors.NewBadRequest(err.Error())
	}
	n, f := must(meta.Accessor(next)), must(meta.Accessor(found))
	if n.GetUID() != f.GetUID() || n.GetResourceVersion() != f.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), patch.GetName(), nil)
	}
	return w.store(a, found, merged(found, next, a.GetSubresource()))
}

// merged is found with the part of next that the endpoint may change.
func merged(found, next runtime.Object, subresource string) runtime.Object {
	base, other := found, next
	if subresource != "status" {
		base, other = next, found
	}
	out := base.DeepCopyObject()
	to, from := reflect.ValueOf(out).Elem().FieldByName("Status"), reflect.ValueOf(other).Elem().FieldByName("Status")
	if to.IsValid() && from.IsValid() {
		to.Set(reflect.ValueOf(other.DeepCopyObject()).Elem().FieldByName("Status"))
	}
	if d, ok := out.(*appsv1.Deployment); ok { // its status endpoint takes annotations, and counts them as changes elsewhere
		d.Annotations = maps.Clone(next.(*appsv1.Deployment).Annotations)
	}
	return out
}

// store writes next unless it equals found.
func (w *World) store(a ktesting.Action, found, next runtime.Object) (bool, runtime.Object, error) {
	was, m := must(meta.Accessor(found)), must(meta.Accessor(next))
	m.SetResourceVersion(was.GetResourceVersion())
	m.SetGeneration(was.GetGeneration())
	m.SetUID(was.GetUID())
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	if reflect.DeepEqual(found, next) {
		return true, next, nil
	}
	return true, next, w.changed(w.replace(a.GetResource(), a.GetSubresource(), found, next))
}

// replace stores next in the place of found, with a version and a generation of its own.
func (w *World) replace(resource schema.GroupVersionResource, subresource string, found, next runtime.Object) error {
	was, m := must(meta.Accessor(found)), must(meta.Accessor(next))
	m.SetResourceVersion(strconv.Itoa(w.next()))
	_, deployment := next.(*appsv1.Deployment)
	annotated := deployment && subresource == "" && !maps.Equal(was.GetAnnotations(), m.GetAnnotations())
	if annotated || !sameField(found, next, "Spec") || !sameSlice(found, next) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
	if m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) == 0 && !lingers(next) && !hasSpecFinalizers(next) {
		return w.remove(resource, m.GetNamespace(), m.GetName())
	}
	return w.Client.Tracker().Update(resource, next, m.GetNamespace())
}

// lingers reports whether only the node agent may end the object.
func lingers(o runtime.Object) bool {
	p, ok := o.(*corev1.Pod)
	return ok && p.Spec.NodeName != ""
}

func hasSpecFinalizers(o runtime.Object) bool {
	ns, ok := o.(*corev1.Namespace)
	return ok && len(ns.Spec.Finalizers) > 0
}

// sameSlice is true for all but EndpointSlices, whose generation moves with what they list.
func sameSlice(a, b runtime.Object) bool {
	_, slice := a.(*discoveryv1.EndpointSlice)
	return !slice || sameField(a, b, "Endpoints") && sameField(a, b, "Ports")
}

func sameField(a, b runtime.Object, field string) bool {
	x, y := reflect.ValueOf(a).Elem().FieldByName(field), reflect.ValueOf(b).Elem().FieldByName(field)
	return !x.IsValid() || reflect.DeepEqual(x.Interface(), y.Interface())
}

// onDelete marks what has finalizers or is a placed pod, and deletes the rest.
func (w *World) onDelete(a ktesting.Action) (bool, runtime.Object, error) {
	del := a.(ktesting.DeleteActionImpl)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(a, del.GetName())
	found, err := w.Client.Tracker().Get(a.GetResource(), a.GetNamespace(), del.GetName())
	if err != nil {
		return true, nil, err
	}
	m := must(meta.Accessor(found))
	if p := del.DeleteOptions.Preconditions; p != nil &&
		(p.UID != nil && *p.UID != m.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion()) {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), del.GetName(), nil)
	}
	return true, nil, w.end(a.GetResource(), found, del.DeleteOptions, w.changed)
}

// end deletes found, or marks it. done gets the outcome if there was anything to do.
func (w *World) end(resource schema.GroupVersionResource, found runtime.Object, opts metav1.DeleteOptions, done func(error) error) error {
	m := must(meta.Accessor(found))
	grace := opts.GracePeriodSeconds
	pod, isPod := found.(*corev1.Pod)
	linger := isPod && pod.Spec.NodeName != "" && (grace == nil || *grace > 0)
	finalizers := withPolicy(m.GetFinalizers(), opts.PropagationPolicy)
	if !linger && len(finalizers) == 0 && !hasSpecFinalizers(found) {
		return done(w.remove(resource, m.GetNamespace(), m.GetName()))
	}
	if m.GetDeletionTimestamp() != nil {
		return nil
	}
	next := found.DeepCopyObject()
	now := metav1.NewTime(time.Now())
	n := must(meta.Accessor(next))
	n.SetDeletionTimestamp(&now)
	n.SetFinalizers(finalizers)
	n.SetResourceVersion(strconv.Itoa(w.next()))
	return done(w.Client.Tracker().Update(resource, next, m.GetNamespace()))
}

func withPolicy(finalizers []string, policy *metav1.DeletionPropagation) []string {
	if policy == nil {
		return finalizers
	}
	set := map[string]bool{}
	for _, f := range finalizers {
		set[f] = true
	}
	switch *policy {
	case metav1.DeletePropagationForeground:
		set[metav1.FinalizerDeleteDependents] = true
	case metav1.DeletePropagationOrphan:
		set[metav1.FinalizerOrphanDependents] = true
	}
	var out []string
	for f := range maps.Keys(set) {
		out = append(out, f)
	}
	return out
}
