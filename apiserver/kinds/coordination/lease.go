package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func leases() resource.Kind[*coordinationv1.Lease] {
	return resource.Kind[*coordinationv1.Lease]{
		GroupVersionKind:       coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		Plural:                 "leases",
		New:                    func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
		NewList:                func() runtime.Object { return &coordinationv1.LeaseList{} },
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

func validateLease(lease *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path, spec := field.NewPath("spec"), &lease.Spec
	if d := spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if spec.Strategy != nil {
		errs = append(errs, validateLeaseStrategy(*spec.Strategy, path.Child("strategy"))...)
	}
	if holder := spec.PreferredHolder; holder != nil && *holder != "" && ptr.Deref(spec.Strategy, "") == "" {
		errs = append(errs, field.Forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}

// validateLeaseStrategy accepts the known strategies and, for others, any
// qualified name with a domain.
func validateLeaseStrategy(strategy coordinationv1.CoordinatedLeaseStrategy, path *field.Path) field.ErrorList {
	if strategy == coordinationv1.OldestEmulationVersion {
		return nil
	}
	return rule.Invalid(strategy, utilvalidation.IsQualifiedName(string(strategy)), path)
}
