package crdstatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

const (
	// remainingDelay is how soon instances that finalizers hold are looked at again: no
	// informer tells of them.
	remainingDelay = time.Second
	// instancePage is how many instances are looked at in one list.
	instancePage = 500
)

// cleanUp deletes the instances of a definition, notes in its status how far that is,
// and reports whether none are left. Nothing can be created meanwhile: the API server
// refuses that.
func (c *controller) cleanUp(ctx context.Context, d *definition) (done bool, again time.Duration, err error) {
	if !apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established) {
		noteEnd(d, "NeverEstablished", "resource was never established")
		return true, 0, nil
	}
	note(d, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	if err := c.deleteInstances(ctx, d); err != nil {
		note(d, "InstanceDeletionFailed", fmt.Sprintf("could not issue all deletes: %v", err))
		return false, 0, err
	}
	left, err := c.instances(d).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		note(d, "InstanceDeletionCheck", fmt.Sprintf("could not confirm zero CustomResources remaining: %v", err))
		return false, 0, err
	}
	if len(left.Items) > 0 {
		return false, remainingDelay, nil
	}
	noteEnd(d, "InstanceDeletionCompleted", "removed all instances")
	return true, 0, nil
}

// note says how far the deletion of the instances is.
func note(d *definition, reason, message string) {
	terminating(d, apiextensionsv1.ConditionTrue, reason, message)
}

// noteEnd says that there are no instances, for whoever sees the definition while other finalizers hold it.
func noteEnd(d *definition, reason, message string) {
	terminating(d, apiextensionsv1.ConditionFalse, reason, message)
}

func terminating(d *definition, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(d, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message,
	})
}

// instances reads and deletes custom resources in a version that the API server
// serves; of a definition that is being deleted it serves the storage version always.
func (c *controller) instances(d *definition) metadata.Getter {
	version, _ := apihelpers.GetCRDStorageVersion(d) // validation demands one
	return c.env.Metadata.Resource(schema.GroupVersionResource{
		Group: d.Spec.Group, Version: version, Resource: d.Status.AcceptedNames.Plural,
	})
}

// deleteInstances asks once for the deletion of everything, namespace by namespace.
func (c *controller) deleteInstances(ctx context.Context, d *definition) error {
	instances := c.instances(d)
	asked := map[string]bool{}
	var errs []error
	options := metav1.ListOptions{Limit: instancePage}
	for {
		page, err := instances.List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if namespace := item.Namespace; item.DeletionTimestamp == nil && !asked[namespace] {
				asked[namespace] = true
				err := instances.Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
				if !apierrors.IsNotFound(err) {
					errs = append(errs, err)
				}
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return errors.Join(errs...)
		}
	}
}
