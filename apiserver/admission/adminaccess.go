package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// adminAccess lets claims use devices that others use too only in namespaces that an
// administrator has marked for it.
type adminAccess struct {
	*admission.Handler
	namespaces objects[*corev1.Namespace]
}

func newAdminAccess(store *storage.Store) adminAccess {
	return adminAccess{
		admission.NewHandler(admission.Create, admission.Update),
		objectsOf[*corev1.Namespace](store, corev1.SchemeGroupVersion.WithResource("namespaces")),
	}
}

// Validate implements admission.ValidationInterface.
func (p adminAccess) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != resourcev1.GroupName {
		return nil
	}
	at := wantsAdmin(a)
	if at == nil {
		return nil
	}
	namespace, found, err := p.namespaces.get(ctx, "", a.GetNamespace())
	if err != nil {
		return err
	}
	if found && namespace.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true" {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), field.ErrorList{field.Forbidden(
		at,
		fmt.Sprintf(
			"admin access to devices requires the `%s: true` label on the containing namespace",
			resourcev1.DRAAdminNamespaceLabelKey,
		),
	)})
}

// wantsAdmin returns the field by which a write asks for the access, or nil.
func wantsAdmin(a admission.Attributes) *field.Path {
	switch obj := a.GetObject().(type) {
	case *resourcev1.ResourceClaim:
		if a.GetSubresource() == "status" {
			old, _ := a.GetOldObject().(*resourcev1.ResourceClaim)
			if old != nil && grantedAdmin(old) != nil {
				return nil
			}
			return grantedAdmin(obj)
		}
		return requestedAdmin(a, obj.Spec)
	case *resourcev1.ResourceClaimTemplate:
		return requestedAdmin(a, obj.Spec.Spec)
	default:
		return nil
	}
}

// requestedAdmin: what is asked for cannot change later, so only a create asks.
func requestedAdmin(a admission.Attributes, claim resourcev1.ResourceClaimSpec) *field.Path {
	if a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return nil
	}
	for i, r := range claim.Devices.Requests {
		if r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess {
			return field.NewPath("spec", "devices", "requests").Index(i).Child("adminAccess")
		}
	}
	return nil
}

func grantedAdmin(claim *resourcev1.ResourceClaim) *field.Path {
	if claim.Status.Allocation == nil {
		return nil
	}
	for i, r := range claim.Status.Allocation.Devices.Results {
		if r.AdminAccess != nil && *r.AdminAccess {
			return field.NewPath("status", "allocation", "devices", "results").Index(i).Child("adminAccess")
		}
	}
	return nil
}
