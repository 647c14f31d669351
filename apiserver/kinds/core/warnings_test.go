package core

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestServiceWarnings(t *testing.T) {
	for text, want := range map[string]string{
		`{type: ClusterIP, externalIPs: [10.0.0.1]}`:                         "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
		`{type: ClusterIP, clusterIP: None, loadBalancerIP: x}`:              "spec.loadBalancerIP is ignored for headless services",
		`{type: ClusterIP, clusterIP: None, sessionAffinity: ClientIP}`:      "spec.SessionAffinity is ignored for headless services",
		`{type: ExternalName, externalName: a, externalIPs: [10.0.0.1]}`:     `spec.externalIPs is ignored when spec.type is "ExternalName"`,
		`{type: ClusterIP, trafficDistribution: PreferClose}`:                `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`,
		`{type: LoadBalancer, loadBalancerIP: 10.0.0.1}`:                     "",
		`{type: ClusterIP, clusterIP: 10.96.0.9, sessionAffinity: ClientIP}`: "",
	} {
		svc := corev1.Service{Spec: corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinityNone}}
		if err := yaml.UnmarshalStrict([]byte(text), &svc.Spec); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(serviceWarnings(&svc), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestPodNameWarnings are for creators only.
func TestPodNameWarnings(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a.b"}}
	if got := podWarnings(pod, nil); len(got) != 1 || !strings.HasSuffix(got[0], "a DNS label is recommended: [must not contain dots]") {
		t.Errorf("create: %q", got)
	}
	if got := podWarnings(pod, pod); got != nil {
		t.Errorf("update: %q", got)
	}
}

func TestSecretWarnings(t *testing.T) {
	secret := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")}}
	if got := strings.Join(secretWarnings(secret), ""); got != "tls: failed to find any PEM data in certificate input" {
		t.Errorf("%q", got)
	}
	if secret.Type = corev1.SecretTypeOpaque; secretWarnings(secret) != nil {
		t.Error("another type is warned of")
	}
}
