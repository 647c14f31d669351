package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func leases() resource.Kind[*coordinationv1.Lease] {
	return resource.Kind[*coordinationv1.Lease]{
		GroupVersionKind:       coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		Plural:                 "leases",
		New:                    func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
		NewList:                func() runtime.Object { return &coordinationv1.LeaseList{} },
		Default:                dropCoordination,
		Validate:               validateLease,
		ValidateUpdate:         func(lease, _ *coordinationv1.Lease) field.ErrorList { return validateLease(lease) },
		Spec:                   func(lease *coordinationv1.Lease) any { return &lease.Spec },
		AllowCreateOnUpdate:    true,
		RequireResourceVersion: true,
		Columns: []resource.Column[*coordinationv1.Lease]{
			column.Name[*coordinationv1.Lease](),
			column.Text("Holder", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"], 0, func(lease *coordinationv1.Lease) string {
				return ptr.Deref(lease.Spec.HolderIdentity, "")
			}),
			column.Age[*coordinationv1.Lease](),
		},
	}
}

// dropCoordination clears the fields of a feature that is switched off in Kubernetes 1.37 (CoordinatedLeaderElection).
func dropCoordination(lease *coordinationv1.Lease) {
	lease.Spec.Strategy, lease.Spec.PreferredHolder = nil, nil
}

func validateLease(lease *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path, spec := field.NewPath("spec"), &lease.Spec
	if d := spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}
