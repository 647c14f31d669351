package undelete

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/explain"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// isThere is an error if the object exists, or cannot be where it was.
func (c *cluster) isThere(ctx context.Context, k kind, o explain.Object) error {
	object, err := in(c.now, k.GroupVersionResource, o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case err == nil && object.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s: %w", o, errEnding)
	case err == nil:
		return fmt.Errorf("%s: %w", o, errExists)
	case !apierrors.IsNotFound(err):
		return err
	case o.Namespace == "":
		return nil
	}
	namespace, err := c.now.Resource(namespaces).Get(ctx, o.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s was in a namespace that is no more: 'setpoint undelete namespace/%s' gives that back with all that was in it", o, o.Namespace)
	case apierrors.IsForbidden(err):
		return nil // who may not see namespaces is told by the dry run
	case err != nil:
		return err
	case namespace.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s cannot come back: its namespace %s is being deleted", o, o.Namespace)
	}
	return nil
}

// judge refuses a plan that would not be carried out. In a namespace that is not there only the caller's rights can be judged.
func (c *cluster) judge(ctx context.Context, p *plan) error {
	var refused []string
	asked := map[string]bool{}
	for i, one := range p.parts() {
		var why string
		var err error
		if i == 0 || one.resource.GroupResource() == namespaces.GroupResource() {
			why, err = c.dryRun(ctx, one)
		} else if question := one.resource.GroupResource().String(); !asked[question] {
			asked[question] = true
			why, err = c.mayNot(ctx, one)
		}
		if err != nil {
			return err
		}
		if why != "" {
			refused = append(refused, why)
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("nothing was given back, for it would be refused:\n  %s", strings.Join(refused, "\n  "))
	}
	return nil
}

// dryRun is why the API refuses an object, "" if it does not.
func (c *cluster) dryRun(ctx context.Context, p *part) (refused string, err error) {
	_, err = in(c.now, p.resource, p.object.GetNamespace()).Create(ctx, p.object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager,
	})
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return "", err // no answer
	}
	return fmt.Sprintf("%s: %v", p, err), nil
}

// mayNot says that the caller may not create such objects, "" if he may.
func (c *cluster) mayNot(ctx context.Context, p *part) (refused string, err error) {
	review, err := c.access.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: p.object.GetNamespace(), Verb: "create", Group: p.resource.Group, Version: p.resource.Version, Resource: p.resource.Resource,
		},
	}}, metav1.CreateOptions{})
	if err != nil || review.Status.Allowed {
		return "", err
	}
	return fmt.Sprintf("%s: you may not create %s in %s", p, p.resource.GroupResource(), p.object.GetNamespace()), nil
}

// pastOf is the object as it was.
func (c *cluster) pastOf(ctx context.Context, k kind, o explain.Object) (*unstructured.Unstructured, error) {
	object, err := in(c.then, k.GroupVersionResource, o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s was not there at that time", o)
	case err != nil:
		return nil, err
	case object.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%s was being deleted already at that time: choose an earlier one", o)
	}
	return object, nil
}
