package admission

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// namespaceLifecycle keeps the namespaces that every cluster has, and tells early
// that a namespace is not there or is going: plugins after it would look for what
// is in it. The write itself judges it again, in its transaction.
type namespaceLifecycle struct {
	namespaces objects[*corev1.Namespace]
}

func newNamespaceLifecycle(store *storage.Store) namespaceLifecycle {
	return namespaceLifecycle{namespacesOf(store)}
}

// Handles implements admission.Interface.
func (namespaceLifecycle) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Delete
}

// Admit implements admission.MutationInterface; it changes nothing.
func (n namespaceLifecycle) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch {
	case a.GetOperation() == admission.Delete:
		return keepImmortal(a)
	case a.GetNamespace() == "", a.GetResource().GroupResource() == namespacesResource, reviewsAccess(a):
		return nil
	}
	namespace, found, err := n.namespaces.get(ctx, "", a.GetNamespace())
	if found && namespace.DeletionTimestamp != nil {
		namespace, found, err = n.namespaces.newest(ctx, "", a.GetNamespace())
	}
	switch {
	case err != nil || n.namespaces.table == nil:
		return err
	case !found:
		return apierrors.NewNotFound(namespacesResource, a.GetNamespace())
	case namespace.DeletionTimestamp != nil:
		return namespaceTerminating(a)
	}
	return nil
}

func keepImmortal(a admission.Attributes) error {
	if !isMain(a, namespacesResource) {
		return nil
	}
	name := a.GetName()
	if old, ok := a.GetOldObject().(*corev1.Namespace); ok {
		name = old.Name // the request may delete them all
	}
	switch name {
	case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
		return apierrors.NewForbidden(namespacesResource, name, errors.New("this namespace may not be deleted"))
	}
	return nil
}

// reviewsAccess: one may ask what one would be allowed to do in a namespace to come.
func reviewsAccess(a admission.Attributes) bool {
	return a.GetResource().Group == "authorization.k8s.io" && a.GetResource().Resource == "localsubjectaccessreviews"
}

// namespaceTerminating carries the cause by which controllers know to give up.
func namespaceTerminating(a admission.Attributes) error {
	err := admission.NewForbidden(
		a,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.GetNamespace()),
	)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", a.GetNamespace()),
			Field:   "metadata.namespace",
		})
	}
	return err
}
