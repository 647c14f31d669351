package pods

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/podfields"
)

// TestHostsNameThePod: a hostname that is overridden is in no domain, whatever the subdomain.
func TestHostsNameThePod(t *testing.T) {
	override := "other"
	for want, pod := range map[string]*corev1.PodSpec{
		"10.0.0.9\tweb\n": {Hostname: "web"}, "10.0.0.9\tweb.sub.ns.svc.cluster.local\tweb\n": {Hostname: "web", Subdomain: "sub"},
		"10.0.0.9\tother\n": {Hostname: "web", Subdomain: "sub", HostnameOverride: &override},
	} {
		of := &corev1.Pod{Spec: *pod}
		of.Namespace, of.Name = "ns", "p"
		got, err := hosts(of, []string{"10.0.0.9"}, "cluster.local")
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("want %q in %q, %v", want, got, err)
		}
	}
}

// TestAnotherSystemsPod is refused for upstream's reason, whatever else the node does not support.
func TestAnotherSystemsPod(t *testing.T) {
	spec := &corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}
	why := rejectionFor(podfields.Find(spec, "spec", podfields.Node{}))
	if why == nil || why.Reason != "PodOSNotSupported" || why.Message != "Failed to admit pod as the OS field doesn't match node OS" {
		t.Errorf("%+v", why)
	}
}
