package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/resource"
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
	if errs := validateBinding(binding); len(errs) > 0 {
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
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
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

func validateBinding(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("target")
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), b.Target.Kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	return errs
}

func (b bindingStore) bind(v *storage.View, binding *corev1.Binding) (*storage.Change, error) {
	if v.Current == nil {
		return nil, apierrors.NewNotFound(b.pods.kind.GroupResource(), binding.Name)
	}
	pod := v.Current.Copy().(*corev1.Pod)
	if err := b.refuse(pod, binding); err != nil {
		return nil, err
	}
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.NominatedNodeName = "" // the promise is kept: nobody has to leave room for it elsewhere
	for k, value := range binding.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, k, value)
	}
	for k, value := range binding.Labels {
		if _, said := pod.Labels[k]; !said {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, k, value)
		}
	}
	setScheduled(pod)
	return &storage.Change{Object: pod}, nil
}

func (b bindingStore) refuse(pod *corev1.Pod, binding *corev1.Binding) error {
	conflict := func(why string) error {
		return apierrors.NewConflict(b.pods.kind.GroupResource(), pod.Name, errors.New(why))
	}
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return conflict(fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", binding.UID, pod.UID))
	case binding.ResourceVersion != "" && binding.ResourceVersion != pod.ResourceVersion:
		return conflict(fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", binding.ResourceVersion, pod.ResourceVersion))
	case pod.DeletionTimestamp != nil:
		return conflict(fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return conflict(fmt.Sprintf("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	case len(pod.Spec.SchedulingGates) > 0:
		return conflict(fmt.Sprintf("pod %v has non-empty .spec.schedulingGates", pod.Name))
	}
	return nil
}

// setScheduled replaces whatever was said about scheduling by success.
func setScheduled(pod *corev1.Pod) {
	done := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Now(), ObservedGeneration: pod.Generation,
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			pod.Status.Conditions[i] = done
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, done)
}
