package unattended

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const warningMax = 120

func TestTextsFitIntoAHeader(t *testing.T) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	var texts []string
	for _, k := range Kinds() {
		texts = append(texts, k.Text)
	}
	for _, kind := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName} {
		texts = append(texts, Service(&corev1.ServiceSpec{Type: kind, ExternalIPs: []string{"192.0.2.1"}, SessionAffinity: corev1.ServiceAffinityClientIP, InternalTrafficPolicy: &local})...)
	}
	for _, text := range texts {
		if text == "" || len(text) > warningMax {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	}
	if want := len(Kinds()) + 3*4; len(texts) != want {
		t.Errorf("%d texts, want %d", len(texts), want)
	}
}

func TestText(t *testing.T) {
	got := map[string]bool{}
	for _, resource := range []string{"ingressclasses", "ingresses"} {
		got[resource] = Text(schema.GroupResource{Group: "networking.k8s.io", Resource: resource}) != ""
	}
	got["other group"] = Text(schema.GroupResource{Group: "example.com", Resource: "ingresses"}) != ""
	got["deployments"] = Text(schema.GroupResource{Group: "apps", Resource: "deployments"}) != ""
	if diff := cmp.Diff(map[string]bool{"ingressclasses": false, "ingresses": true, "other group": false, "deployments": false}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOrdinaryServicesAreServed(t *testing.T) {
	cluster := corev1.ServiceInternalTrafficPolicyCluster
	spec := &corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: &cluster}
	if texts := Service(spec); len(texts) != 0 {
		t.Error(texts)
	}
}
