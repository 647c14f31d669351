package revisions

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ErrCollision says that a revision of this name holds another template: the
// caller raises its collision count, which changes the hash.
var ErrCollision = errors.New("another revision has this name")

// Create writes a revision. One of the same name and data is returned instead.
func Create(ctx context.Context, client kubernetes.Interface, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	api := client.AppsV1().ControllerRevisions(r.Namespace)
	created, err := api.Create(ctx, r, metav1.CreateOptions{})
	if err == nil {
		return created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create revision: %w", err)
	}
	found, err := api.Get(ctx, r.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read revision: %w", err)
	}
	if !bytes.Equal(found.Data.Raw, r.Data.Raw) {
		return nil, fmt.Errorf("revision %s: %w", r.Name, ErrCollision)
	}
	return found, nil
}

// Renumber gives a revision a number, unless it has it. The given one is not changed.
func Renumber(
	ctx context.Context, client kubernetes.Interface, r *appsv1.ControllerRevision, number int64,
) (*appsv1.ControllerRevision, error) {
	if r.Revision == number {
		return r, nil
	}
	next := r.DeepCopy()
	next.Revision = number
	written, err := client.AppsV1().ControllerRevisions(r.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("renumber revision %s: %w", r.Name, err)
	}
	return written, nil
}

// Delete deletes revisions. One that is gone already is no error.
func Delete(ctx context.Context, client kubernetes.Interface, surplus ...*appsv1.ControllerRevision) error {
	for _, r := range surplus {
		err := client.AppsV1().ControllerRevisions(r.Namespace).Delete(ctx, r.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete revision %s: %w", r.Name, err)
		}
	}
	return nil
}
