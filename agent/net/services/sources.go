package services

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sourceRanges are those of a family that may use a load balancer's addresses; none: all. The older annotation counts where the
// field is empty.
func sourceRanges(s *corev1.Service, f corev1.IPFamily) []netip.Prefix {
	texts := s.Spec.LoadBalancerSourceRanges
	if text := s.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; len(texts) == 0 && text != "" {
		texts = strings.Split(text, ",")
	}
	if len(texts) == 0 {
		return nil
	}
	var ranges []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && in(f, p.Addr()) {
			ranges = append(ranges, p.Masked())
		}
	}
	if len(ranges) == 0 { // all are of the other family: nobody may
		return []netip.Prefix{netip.PrefixFrom(unspecified[f], unspecified[f].BitLen())}
	}
	return disjoint(ranges)
}

// disjoint leaves out ranges that lie within others: the kernel takes no overlaps.
func disjoint(ranges []netip.Prefix) []netip.Prefix {
	slices.SortFunc(ranges, func(a, b netip.Prefix) int {
		if a.Bits() != b.Bits() {
			return a.Bits() - b.Bits()
		}
		return a.Addr().Compare(b.Addr())
	})
	var kept []netip.Prefix
	for _, p := range ranges {
		if !slices.ContainsFunc(kept, func(k netip.Prefix) bool { return k.Overlaps(p) }) {
			kept = append(kept, p)
		}
	}
	return kept
}
