package services

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nobody is the range of a Service whose source ranges are all of the other family.
var nobody = netip.PrefixFrom(netip.IPv4Unspecified(), 32)

// sourceRanges are those that may use a load balancer's addresses; none: all. The older annotation counts where the field is empty.
func sourceRanges(s *corev1.Service) []netip.Prefix {
	texts := s.Spec.LoadBalancerSourceRanges
	if text := s.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; len(texts) == 0 && text != "" {
		texts = strings.Split(text, ",")
	}
	if len(texts) == 0 {
		return nil
	}
	var ranges []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && p.Addr().Is4() {
			ranges = append(ranges, p.Masked())
		}
	}
	if len(ranges) == 0 {
		return []netip.Prefix{nobody}
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
