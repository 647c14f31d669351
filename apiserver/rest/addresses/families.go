package addresses

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// assignFamilies completes which families of addresses a Service has. This cluster
// gives addresses of version 4 only, so whoever wants both gets one or an error; only
// a headless Service whose endpoints somebody else writes may speak of both.
func assignFamilies(s *corev1.Service) error {
	spec := &s.Spec
	elsewhere := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		if elsewhere {
			spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	errs := refuseFamilies(spec, elsewhere)
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, s.Name, errs)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if elsewhere && len(spec.IPFamilies) == 1 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if spec.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		spec.IPFamilies = append(spec.IPFamilies, other)
	}
	return nil
}

func refuseFamilies(spec *corev1.ServiceSpec, elsewhere bool) field.ErrorList {
	var errs field.ErrorList
	path, policy := field.NewPath("spec"), *spec.IPFamilyPolicy
	refuse := func(why string) { errs = append(errs, field.Invalid(path.Child("ipFamilyPolicy"), policy, why)) }
	if policy == corev1.IPFamilyPolicySingleStack {
		if len(spec.ClusterIPs) == 2 {
			refuse("must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified")
		}
		if len(spec.IPFamilies) == 2 {
			refuse("must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")
		}
	}
	for i, ip := range spec.ClusterIPs {
		if isVersion6(ip) && i >= len(spec.IPFamilies) {
			errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(i), spec.ClusterIPs, "IPv6 is not configured on this cluster"))
		}
	}
	if elsewhere || len(errs) > 0 {
		return errs
	}
	if policy == corev1.IPFamilyPolicyRequireDualStack {
		refuse("this cluster is not configured for dual-stack services")
	}
	for i, family := range spec.IPFamilies {
		if family != corev1.IPv4Protocol {
			errs = append(errs, field.Invalid(path.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}

func isVersion6(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Is6()
}
