package networking

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

func TestRangesOfVersion6AreWarnedOf(t *testing.T) {
	const told = ": Setpoint gives Services addresses of version 4 only: none is drawn from this range"
	for _, c := range []struct{ ranges, want []string }{
		{[]string{"10.1.0.0/24"}, nil},
		{[]string{"fd00::/112"}, []string{"spec.cidrs[0]" + told}},
		{[]string{"10.1.0.0/24", "fd00::/112"}, []string{"spec.cidrs[1]" + told}},
	} {
		got := warnOfFamilies(&networkingv1.ServiceCIDR{Spec: networkingv1.ServiceCIDRSpec{CIDRs: c.ranges}})
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %q", c.ranges, got)
		}
		for _, text := range got {
			if len(text) > 120 {
				t.Errorf("%d bytes: %s", len(text), text)
			}
		}
	}
}
