package optional

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// owners lets only those change the owners of an object who may delete it, since without its owners it goes; and only those keep an
// owner from going who may set its finalizers, since that is as good as one.
type owners struct {
	authorizer authorizer.UnconditionalAuthorizer
	mapper     meta.RESTMapper
}

// Handles implements admission.Interface.
func (owners) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (o owners) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Resource == "pods" && a.GetResource().Group == "" && a.GetSubresource() == "status" {
		return nil // a status changes no owners
	}
	old, now := ownersOf(a.GetOldObject()), ownersOf(a.GetObject())
	if apiequality.Semantic.DeepEqual(old, now) {
		return nil
	}
	if err := o.mayDelete(ctx, a); err != nil {
		return err
	}
	return o.mayBlock(ctx, a, newlyBlocking(old, now))
}

// ownersOf are the owners of an object, nil if it can have none.
func ownersOf(obj runtime.Object) []metav1.OwnerReference {
	if obj == nil {
		return nil
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return accessor.GetOwnerReferences()
}

// mayDelete judges changes: whoever makes an object might as well not have made it.
func (o owners) mayDelete(ctx context.Context, a admission.Attributes) error {
	if a.GetOperation() == admission.Create {
		return nil
	}
	decision, reason, err := o.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "delete", Namespace: a.GetNamespace(), Name: a.GetName(), ResourceRequest: true,
		APIGroup: a.GetResource().Group, APIVersion: a.GetResource().Version, Resource: a.GetResource().Resource, Subresource: a.GetSubresource(),
	})
	if decision != authorizer.DecisionAllow {
		return admission.NewForbidden(a, fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %v, %v", reason, err))
	}
	return nil
}

// newlyBlocking are the owners that cannot go before the object, and could.
func newlyBlocking(old, now []metav1.OwnerReference) (blocking []metav1.OwnerReference) {
	for _, ref := range now {
		did := slices.ContainsFunc(old, func(o metav1.OwnerReference) bool { return o.UID == ref.UID && blocks(o) })
		if blocks(ref) && !did {
			blocking = append(blocking, ref)
		}
	}
	return blocking
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

func (o owners) mayBlock(ctx context.Context, a admission.Attributes, refs []metav1.OwnerReference) error {
	if len(refs) == 0 || o.mayFinalize(ctx, a, schema.GroupVersionResource{Group: "*", Version: "*", Resource: "*"}, "", "*") == nil {
		return nil
	}
	for _, ref := range refs {
		if err := o.mayBlockOne(ctx, a, ref); err != nil {
			return err
		}
	}
	return nil
}

// mayBlockOne asks for each resource that the owner's kind may be.
func (o owners) mayBlockOne(ctx context.Context, a admission.Attributes, ref metav1.OwnerReference) error {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mappings, err := o.mapper.RESTMappings(kind.GroupKind(), kind.Version)
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf(
			"cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %w", ref.APIVersion, ref.Kind, err))
	}
	for _, mapping := range mappings {
		namespace := "" // of an owner with one it is the object's own
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = a.GetNamespace()
		}
		if err := o.mayFinalize(ctx, a, mapping.Resource, namespace, ref.Name); err != nil {
			return err
		}
	}
	return nil
}

func (o owners) mayFinalize(ctx context.Context, a admission.Attributes, owner schema.GroupVersionResource, namespace, name string) error {
	decision, reason, err := o.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "update", Namespace: namespace, Name: name, ResourceRequest: true,
		APIGroup: owner.Group, APIVersion: owner.Version, Resource: owner.Resource, Subresource: "finalizers",
	})
	if decision != authorizer.DecisionAllow {
		return admission.NewForbidden(a, fmt.Errorf(
			"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %v, %v", reason, err))
	}
	return nil
}
