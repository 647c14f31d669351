package status

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFamilyMismatch: only a node whose first address has changed its version of IP is told of.
func TestFamilyMismatch(t *testing.T) {
	for _, c := range []struct {
		before, want string
		now          []string
	}{
		{"", "", []string{"192.0.2.1"}},
		{"192.0.2.1", "", nil},
		{"192.0.2.1", "", []string{"192.0.2.2", "2001:db8::1"}},
		{"2001:db8::1", "", []string{"2001:db8::2"}},
		{"192.0.2.1", "an IPv4 node IP (192.0.2.1), but the cloud provider selected an IPv6 node IP (2001:db8::1)", []string{"2001:db8::1"}},
		{"2001:db8::1", "an IPv6 node IP (2001:db8::1), but the cloud provider selected an IPv4 node IP (192.0.2.1)", []string{"192.0.2.1"}},
	} {
		got := FamilyMismatch(&corev1.Pod{Status: corev1.PodStatus{HostIP: c.before}}, c.now)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, now %v: %q", c.before, c.now, got)
		}
	}
}
