package rest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/disruption"
	"github.com/setpoint-io/setpoint/apiserver/rest/stack"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// evictionStore serves pods/eviction: a delete that a budget may refuse to protect
// an application. What the budget loses and what becomes of the pod is one transaction,
// decided on the newest state: no two evictions spend the same disruption.
type evictionStore struct{ pods *Store }

var (
	_ rest.NamedCreater         = evictionStore{}
	_ rest.GroupVersionAcceptor = evictionStore{}
)

// New implements rest.Storage.
func (e evictionStore) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements rest.Storage.
func (e evictionStore) Destroy() {}

// AcceptsGroupVersion implements rest.GroupVersionAcceptor: old clients send v1beta1, whose Evictions are the same.
func (e evictionStore) AcceptsGroupVersion(gv schema.GroupVersion) bool {
	return gv == policyv1.SchemeGroupVersion || gv == policyv1beta1.SchemeGroupVersion
}

// Create implements rest.NamedCreater.
func (e evictionStore) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	stack.Reserve()
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", obj))
	}
	if eviction.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	deletion, err := disruption.Options(eviction, options)
	if err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, eviction.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	err = e.evict(ctx, name, deletion)
	if errors.Is(err, disruption.ErrSeveral) {
		return &metav1.Status{Status: metav1.StatusFailure, Message: disruption.SeveralMessage, Code: 500}, nil
	}
	if err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// evict decides on the newest state: what this replica has may lack a budget.
func (e evictionStore) evict(ctx context.Context, name string, options *metav1.DeleteOptions) error {
	decide := func(v *storage.View) (*storage.Change, error) { return e.decide(ctx, v, name, options) }
	table, namespace := e.pods.table, e.pods.namespace(ctx)
	if len(options.DryRun) > 0 {
		_, err := table.Preview(ctx, namespace, name, decide)
		return err
	}
	pod, err := table.WriteNewest(withActor(ctx), namespace, name, decide)
	if err == nil && e.pods.ends(pod) {
		_, _, err = e.pods.end(ctx, pod)
	}
	return err
}

func (e evictionStore) decide(ctx context.Context, v *storage.View, name string, options *metav1.DeleteOptions) (*storage.Change, error) {
	if v.Current == nil {
		return nil, apierrors.NewNotFound(e.pods.kind.GroupResource(), name)
	}
	pod := v.Current.Object().(*corev1.Pod)
	if err := disruption.Spend(v, pod); err != nil {
		return nil, err
	}
	if err := disruption.Check(pod, options); err != nil {
		return nil, err
	}
	change, err := e.pods.decideDelete(ctx, v, nil, options.DeepCopy())
	if err != nil || change != nil && (change.Delete || e.pods.ends(change.Object)) {
		return change, err
	}
	return marked(v, change), nil
}

// marked is the change of a pod that stays for a while, with the reason why it goes; nil if it says so already.
func marked(v *storage.View, change *storage.Change) *storage.Change {
	var next resource.Object
	if change != nil {
		next = change.Object
	} else {
		next = v.Current.Copy()
	}
	if changed := disruption.Mark(next.(*corev1.Pod), metav1.NewTime(v.Now())); !changed && change == nil {
		return nil
	}
	return &storage.Change{Object: next}
}
