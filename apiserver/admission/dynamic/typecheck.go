package dynamic

import (
	"context"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// typeCheckRetryInterval is how long a checker waits after a failure.
const typeCheckRetryInterval = time.Second

// TypeChecker tells in the status of a validating policy where its expressions do
// not fit the kinds it is about: a misspelt field would refuse every request, or none.
type TypeChecker struct {
	table *storage.Table
	check validatingpolicy.TypeChecker
}

// NewTypeChecker returns a checker that knows the schemas which the API publishes.
func NewTypeChecker(store *storage.Store, api discovery.DiscoveryInterface, mapper meta.RESTMapper) *TypeChecker {
	return &TypeChecker{
		table: store.Table(admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")),
		check: validatingpolicy.TypeChecker{SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: api}, RestMapper: mapper},
	}
}

// Run checks new and changed policies until ctx ends. The leader runs it; what it
// writes carries the Origin of ctx.
func (c *TypeChecker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.follow(ctx); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(typeCheckRetryInterval):
			}
		}
	}
	return nil
}

func (c *TypeChecker) follow(ctx context.Context) error {
	changes, err := c.table.Watch(ctx, storage.WatchOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		policy, ok := storage.Uncache(e.Object).(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !ok || e.Type == watch.Deleted || checked(policy) {
			continue
		}
		if err := c.tell(ctx, policy, c.check.Check(policy)); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// checked reports whether a status speaks of the policy as it is.
func checked(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return policy.Status.TypeChecking != nil && policy.Status.ObservedGeneration >= policy.Generation
}

func (c *TypeChecker) tell(
	ctx context.Context,
	of *admissionregistrationv1.ValidatingAdmissionPolicy,
	warnings []admissionregistrationv1.ExpressionWarning,
) error {
	_, err := c.table.Write(ctx, "", of.Name, func(v *storage.View) (*storage.Change, error) {
		if v.Current == nil {
			return nil, nil
		}
		policy := v.Current.Copy().(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if policy.UID != of.UID || policy.Generation != of.Generation {
			return nil, nil // its own event comes
		}
		policy.Status.ObservedGeneration = of.Generation
		policy.Status.TypeChecking = &admissionregistrationv1.TypeChecking{ExpressionWarnings: warnings}
		own(policy, metav1.NewTime(v.Now()).Rfc3339Copy())
		return &storage.Change{Object: policy}, nil
	})
	return err
}

// statusManager is under which name upstream applies what it tells of a policy.
const statusManager = "validatingadmissionpolicy-status"

// own notes in the metadata whose the status is.
func own(policy *admissionregistrationv1.ValidatingAdmissionPolicy, now metav1.Time) {
	fields := `{"f:status":{"f:observedGeneration":{},"f:typeChecking":{}}}`
	if len(policy.Status.TypeChecking.ExpressionWarnings) > 0 {
		fields = `{"f:status":{"f:observedGeneration":{},"f:typeChecking":{"f:expressionWarnings":{}}}}`
	}
	entry := metav1.ManagedFieldsEntry{
		Manager: statusManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", Time: &now,
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
	others := slices.DeleteFunc(
		slices.Clone(policy.ManagedFields),
		func(e metav1.ManagedFieldsEntry) bool { return e.Manager == statusManager },
	)
	policy.ManagedFields = append([]metav1.ManagedFieldsEntry{entry}, others...) // what is applied stands before what is updated
}
