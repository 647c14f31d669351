package unattended

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const warningMax = 120

func TestTopologyMode(t *testing.T) {
	for mode, want := range map[string]int{"Auto": 1, "Disabled": 0, "": 0} {
		texts := Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.AnnotationTopologyMode: mode}}})
		if len(texts) != want {
			t.Errorf("%q: %v", mode, texts)
		}
		for _, text := range texts {
			if len(text) > warningMax {
				t.Errorf("%d bytes: %s", len(text), text)
			}
		}
	}
}

func TestOrdinaryServicesAreServed(t *testing.T) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	for _, spec := range []corev1.ServiceSpec{
		{Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"192.0.2.1"}, SessionAffinity: corev1.ServiceAffinityClientIP, InternalTrafficPolicy: &local},
		{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	} {
		if texts := Service(&corev1.Service{Spec: spec}); len(texts) != 0 {
			t.Error(texts)
		}
	}
}
