package networking

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// familiesMax is how many ranges one object may have: one for each family.
const familiesMax = 2

func serviceCIDRs() resource.Kind[*networkingv1.ServiceCIDR] {
	return resource.Kind[*networkingv1.ServiceCIDR]{
		GroupVersionKind: networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"),
		Plural:           "servicecidrs",
		ClusterScoped:    true,
		New:              func() *networkingv1.ServiceCIDR { return &networkingv1.ServiceCIDR{} },
		NewList:          func() runtime.Object { return &networkingv1.ServiceCIDRList{} },
		StatusResets:     []string{"metadata", "spec"},
		PrepareStatus:    func(cidr, old *networkingv1.ServiceCIDR) { metav1.ResetObjectMetaForStatus(cidr, old) },
		Validate:         func(cidr *networkingv1.ServiceCIDR) field.ErrorList { return validateRanges(cidr.Spec.CIDRs) },
		ValidateUpdate:   validateServiceCIDRUpdate,
		Spec:             func(cidr *networkingv1.ServiceCIDR) any { return &cidr.Spec },
		Status:           func(cidr *networkingv1.ServiceCIDR) any { return &cidr.Status },
		Columns: []resource.Column[*networkingv1.ServiceCIDR]{
			column.Name[*networkingv1.ServiceCIDR](),
			column.Text("CIDRs", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"], 0, func(cidr *networkingv1.ServiceCIDR) string {
				return strings.Join(cidr.Spec.CIDRs, ",")
			}),
			column.Age[*networkingv1.ServiceCIDR](),
		},
	}
}

var rangesPath = field.NewPath("spec", "cidrs")

func validateRanges(ranges []string) field.ErrorList {
	switch n := len(ranges); {
	case n == 0:
		return field.ErrorList{field.Required(rangesPath, "at least one CIDR required")}
	case n > familiesMax:
		return field.ErrorList{field.Invalid(rangesPath, ranges, "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	for i, cidr := range ranges {
		errs = append(errs, utilvalidation.IsValidCIDR(rangesPath.Index(i), cidr)...)
	}
	if len(ranges) == familiesMax {
		family := netutils.IPFamilyOfCIDRString(ranges[0])
		if family != netutils.IPFamilyUnknown && family == netutils.IPFamilyOfCIDRString(ranges[1]) {
			errs = append(
				errs,
				field.Invalid(
					rangesPath,
					ranges,
					"may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
				),
			)
		}
	}
	return errs
}

// validateServiceCIDRUpdate: addresses are in use; a range of the other family may be added.
func validateServiceCIDRUpdate(cidr, old *networkingv1.ServiceCIDR) field.ErrorList {
	ranges, before := cidr.Spec.CIDRs, old.Spec.CIDRs
	grows := len(before) == 1 && len(ranges) == familiesMax
	if len(ranges) != len(before) && !grows {
		return field.ErrorList{field.Invalid(rangesPath, ranges, validation.FieldImmutableErrorMsg)}
	}
	var errs field.ErrorList
	for i := range before {
		if ranges[i] != before[i] {
			errs = append(errs, field.Invalid(rangesPath.Index(i), ranges[i], validation.FieldImmutableErrorMsg))
		}
	}
	if grows {
		errs = append(errs, validateRanges(ranges)...)
	}
	return errs
}
