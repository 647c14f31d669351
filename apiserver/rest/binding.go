package rest

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	rules "github.com/setpoint-io/setpoint/apiserver/rest/binding"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// bindingStore serves pods/binding: a pod gets its node, once.
type bindingStore struct {
	pods *Store
}

var (
	_ rest.NamedCreater                   = bindingStore{}
	_ rest.SubresourceObjectMetaPreserver = bindingStore{}
)

// New implements rest.Storage.
func (b bindingStore) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements rest.Storage.
func (b bindingStore) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps uid and resourceVersion in the
// body: they say which pod is meant.
func (b bindingStore) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create implements rest.NamedCreater.
func (b bindingStore) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %#v", obj))
	}
	if binding.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := rules.Validate(binding); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Binding").GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, binding.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	_, err := b.pods.write(ctx, name, options.DryRun, func(v *storage.View) (*storage.Change, error) { return b.bind(v, binding) })
	if err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}, nil
}

// looseBindingStore serves bindings, where the name of the pod stands in the body only.
type looseBindingStore struct {
	bindingStore
}

var _ rest.Creater = looseBindingStore{}

// Create implements rest.Creater.
func (b looseBindingStore) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %#v", obj))
	}
	return b.bindingStore.Create(ctx, binding.Name, obj, validate, options)
}

// Bindings is the kind of pods/binding as a resource of its own, as older schedulers use it.
func Bindings() *resource.Any {
	return resource.Erase(resource.Kind[*corev1.Binding]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Binding"), Plural: "bindings", CreateOnly: true,
		New: func() *corev1.Binding { return &corev1.Binding{} }, NewList: func() runtime.Object { return &corev1.Binding{} },
	})
}

func (e *Endpoints) addBindings(pods *Store) error {
	kind, store := Bindings(), looseBindingStore{bindingStore{pods}}
	scope, err := e.scope(kind, "", kind.GroupVersionKind, nil, nil)
	if err != nil {
		return err
	}
	e.kinds[kind.GroupVersionResource()] = kind
	e.add(kind, "", map[string]http.HandlerFunc{
		"create": once(func() http.HandlerFunc { return handlers.CreateResource(store, scope, e.config.Admission) }),
	})
	return nil
}

func (b bindingStore) bind(v *storage.View, binding *corev1.Binding) (*storage.Change, error) {
	if v.Current == nil {
		return nil, apierrors.NewNotFound(b.pods.kind.GroupResource(), binding.Name)
	}
	pod := v.Current.Copy().(*corev1.Pod)
	if err := rules.Apply(pod, binding, v.Now()); err != nil {
		return nil, err
	}
	return &storage.Change{Object: pod}, nil
}
