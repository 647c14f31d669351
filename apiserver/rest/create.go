package rest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// nameAttempts is how many generated names are tried before the client is told
// that none was free (KEP-4420).
const nameAttempts = 8

var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// Create implements rest.Creater.
func (s *Store) Create(ctx context.Context, o runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	obj, err := asObject(o)
	if err != nil {
		return nil, err
	}
	ctx = withFieldManager(ctx, options.FieldManager)
	if obj.GetName() != "" || obj.GetGenerateName() == "" {
		return s.create(ctx, obj, validate, options)
	}
	next := obj.DeepCopyObject().(resource.Object) // made ready by a first attempt, an object cannot be used for another
	for range nameAttempts {
		var created runtime.Object
		created, err = s.create(ctx, obj, validate, options)
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}
		obj = next.DeepCopyObject().(resource.Object)
	}
	return nil, rest.CheckGeneratedNameError(ctx, s.strategy, err, obj)
}

func (s *Store) create(ctx context.Context, obj resource.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	if err := s.prepareCreate(ctx, obj, validate); err != nil {
		return nil, err
	}
	if rv := obj.GetResourceVersion(); rv != "" && rv != "0" && len(options.DryRun) == 0 {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	release, err := s.held(ctx, obj.GetNamespace())
	if err != nil {
		return nil, apierrors.NewTimeoutError(err.Error(), 0)
	}
	defer release()
	created, err := s.write(ctx, obj.GetName(), options.DryRun, func(v *storage.View) (*storage.Change, error) {
		if v.Current != nil {
			return nil, s.alreadyExists(v.Current.Object())
		}
		return s.creation(ctx, v, obj)
	})
	if err != nil {
		return nil, err
	}
	return created, nil
}

// alreadyExists says of an object that is going that the name will be free again.
func (s *Store) alreadyExists(current resource.Object) error {
	err := apierrors.NewAlreadyExists(s.kind.GroupResource(), current.GetName())
	if current.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// prepareCreate stamps what is not deterministic and judges the new object.
func (s *Store) prepareCreate(ctx context.Context, obj resource.Object, validate rest.ValidateObjectFunc) error {
	rest.WipeObjectMetaSystemFields(obj) // what creates by PUT or apply brings what it likes
	rest.FillObjectMetaSystemFields(obj)
	obj.SetCreationTimestamp(metav1.NewTime(s.table.Now()))
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(s.strategy.GenerateName(obj.GetGenerateName()))
	}
	if err := rest.BeforeCreate(s.strategy, ctx, obj); err != nil {
		return err
	}
	if validate == nil {
		return nil
	}
	return validate(ctx, obj.DeepCopyObject())
}

// creation is the change that stores a new object: its namespace must exist, and
// what it needs exclusively must be free.
func (s *Store) creation(ctx context.Context, v *storage.View, obj resource.Object) (*storage.Change, error) {
	if err := s.requireNamespace(v, obj); err != nil {
		return nil, err
	}
	if s.guard != nil {
		if err := s.guard(v, true); err != nil {
			return nil, err
		}
	}
	if s.allocate == nil {
		return s.charged(v, &storage.Change{Object: obj}, obj, nil)
	}
	placed := obj.DeepCopyObject().(resource.Object) // another attempt may place it elsewhere
	claims, _, err := s.allocate(v, placed, nil)
	if err == nil {
		err = s.shared(ctx, v, placed, claims, nil)
	}
	if err != nil {
		return nil, err
	}
	return s.charged(v, &storage.Change{Object: placed, Claims: claims}, placed, nil)
}

func (s *Store) requireNamespace(v *storage.View, obj resource.Object) error {
	if s.kind.ClusterScoped {
		return nil
	}
	found, err := v.Require(namespacesResource, "", obj.GetNamespace())
	if err != nil {
		return err
	}
	namespace, ok := found.(*corev1.Namespace)
	if !ok {
		return apierrors.NewNotFound(namespacesResource.GroupResource(), obj.GetNamespace())
	}
	if namespace.DeletionTimestamp == nil {
		return nil
	}
	return s.namespaceTerminating(obj)
}

// namespaceTerminating carries the cause by which controllers know to give up.
func (s *Store) namespaceTerminating(obj resource.Object) error {
	err := apierrors.NewForbidden(s.kind.GroupResource(), obj.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", obj.GetNamespace()))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", obj.GetNamespace()),
		Field:   "metadata.namespace",
	})
	return err
}
