package rest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// bindingStore serves pods/binding: a pod gets its node, once.
type bindingStore struct {
	pods *Store
}

var _ rest.NamedCreater = bindingStore{}

// New implements rest.Storage.
func (b bindingStore) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements rest.Storage.
func (b bindingStore) Destroy() {}

// Create implements rest.NamedCreater.
func (b bindingStore) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
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
