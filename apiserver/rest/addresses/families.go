package addresses

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var specPath = field.NewPath("spec")

// assignFamilies completes which families of addresses a Service has, out of those that the cluster has, the primary one first.
// before is nil in a create. It says what to do with the second address too: it is released when the policy becomes SingleStack.
func assignFamilies(before, s *corev1.Service, has []corev1.IPFamily) error {
	if keepsPreferred(before, s) {
		return nil
	}
	spec := &s.Spec
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = defaultPolicy(before, spec)
	}
	errs := releaseSecond(before, spec)
	errs = append(errs, refuseSingle(spec)...)
	errs = append(errs, inferFamilies(spec, has)...)
	if len(errs) == 0 && !isElsewhere(spec) {
		errs = refuseFamilies(spec, has)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, s.Name, errs)
	}
	addFamilies(spec, has)
	return nil
}

// isElsewhere reports whether somebody else writes the endpoints of a headless Service: it may speak of families that the cluster has not.
func isElsewhere(spec *corev1.ServiceSpec) bool {
	return spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
}

// keepsPreferred: a Service that prefers two families is not changed because the cluster has got a second one.
func keepsPreferred(before, s *corev1.Service) bool {
	if before == nil || before.Spec.Type != s.Spec.Type || len(before.Spec.ClusterIPs) == 0 {
		return false
	}
	return isPreferring(before) && isPreferring(s) &&
		slices.Equal(before.Spec.ClusterIPs, s.Spec.ClusterIPs) && slices.Equal(before.Spec.IPFamilies, s.Spec.IPFamilies)
}

func isPreferring(s *corev1.Service) bool {
	return s.Spec.IPFamilyPolicy != nil && *s.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
}

func isSingle(spec *corev1.ServiceSpec) bool {
	return *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
}

func defaultPolicy(before *corev1.Service, spec *corev1.ServiceSpec) *corev1.IPFamilyPolicy {
	switch {
	case before != nil && before.Spec.IPFamilyPolicy != nil:
		return before.Spec.IPFamilyPolicy
	case isElsewhere(spec):
		return new(corev1.IPFamilyPolicyRequireDualStack)
	}
	return new(corev1.IPFamilyPolicySingleStack)
}

// releaseSecond drops what an unchanged list has too many when the policy becomes SingleStack. With another policy a list does not
// get shorter.
func releaseSecond(before *corev1.Service, spec *corev1.ServiceSpec) field.ErrorList {
	if before == nil {
		return nil
	}
	was := &before.Spec
	if isSingle(spec) {
		spec.ClusterIPs = firstIfSame(spec.ClusterIPs, was.ClusterIPs)
		spec.IPFamilies = firstIfSame(spec.IPFamilies, was.IPFamilies)
		return nil
	}
	var errs field.ErrorList
	if n := len(spec.ClusterIPs); n > 0 && n < len(was.ClusterIPs) {
		errs = append(errs, invalidPolicy(spec, "must be 'SingleStack' to release the secondary cluster IP"))
	}
	if n := len(spec.IPFamilies); n > 0 && n < len(was.IPFamilies) {
		errs = append(errs, invalidPolicy(spec, "must be 'SingleStack' to release the secondary IP family"))
	}
	return errs
}

func firstIfSame[S ~[]E, E comparable](list, was S) S {
	if len(list) > 1 && slices.Equal(list, was) {
		return slices.Clone(list[:1])
	}
	return list
}

func invalidPolicy(spec *corev1.ServiceSpec, why string) *field.Error {
	return field.Invalid(specPath.Child("ipFamilyPolicy"), spec.IPFamilyPolicy, why)
}

func refuseSingle(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	if isSingle(spec) && len(spec.ClusterIPs) == 2 {
		errs = append(errs, invalidPolicy(spec, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	if isSingle(spec) && len(spec.IPFamilies) == 2 {
		errs = append(errs, invalidPolicy(spec, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	return errs
}

// inferFamilies takes from the addresses what the families do not say.
func inferFamilies(spec *corev1.ServiceSpec, has []corev1.IPFamily) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		family := familyOf(ip)
		switch {
		case ip == corev1.ClusterIPNone || i < len(spec.IPFamilies):
		case slices.Contains(has, family):
			spec.IPFamilies = append(slices.Clone(spec.IPFamilies), family)
		default:
			errs = append(errs, field.Invalid(specPath.Child("clusterIPs").Index(i), spec.ClusterIPs,
				fmt.Sprintf("%s is not configured on this cluster", family)))
		}
	}
	return errs
}

func refuseFamilies(spec *corev1.ServiceSpec, has []corev1.IPFamily) field.ErrorList {
	var errs field.ErrorList
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(has) < 2 {
		errs = append(errs, invalidPolicy(spec, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range spec.IPFamilies {
		if !slices.Contains(has, family) {
			errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}

// addFamilies begins with the cluster's primary family, and adds the other where the policy wants two.
func addFamilies(spec *corev1.ServiceSpec, has []corev1.IPFamily) {
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = slices.Clone(has[:1])
	}
	if len(spec.IPFamilies) > 1 || isSingle(spec) || len(has) < 2 && !isElsewhere(spec) {
		return
	}
	other := corev1.IPv6Protocol
	if spec.IPFamilies[0] == other {
		other = corev1.IPv4Protocol
	}
	spec.IPFamilies = append(slices.Clone(spec.IPFamilies), other)
}

func familyOf(text string) corev1.IPFamily {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
