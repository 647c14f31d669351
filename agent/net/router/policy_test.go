package router

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCheckedBackends: two Services of the same endpoints are checked by their own policies, and a policy that is not right lets nobody ask.
func TestCheckedBackends(t *testing.T) {
	s := newGatewaySite(t)
	pod := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.TLS.ServerName) }))
	t.Cleanup(pod.Close)
	s.backends["10.0.0.3:8080"] = pod.Listener.Addr().String()
	authority := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ca"}, Data: map[string]string{
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pod.Certificate().Raw})),
	}}
	if _, err := s.client.CoreV1().ConfigMaps("n").Create(t.Context(), authority, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.declare("gateways", plainGateway)
	rules := ""
	for name, trust := range map[string]string{
		"right": "hostname: example.com, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]",
		"wrong": "hostname: other.org, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]",
		"lost":  "hostname: example.com, caCertificateRefs: [{group: '', kind: ConfigMap, name: none}]",
	} {
		s.add(service(name))
		s.add(slice(name, "10.0.0.3"))
		s.declare("backendtlspolicies", "kind: BackendTLSPolicy\nmetadata: {name: "+name+", namespace: \"n\"}\n"+
			"spec: {targetRefs: [{group: '', kind: Service, name: "+name+"}], validation: {"+trust+"}}")
		rules += "\n  - {matches: [{path: {value: /" + name + "}}], backendRefs: [{name: " + name + ", port: 80}]}"
	}
	s.declare("httproutes", "kind: HTTPRoute\nmetadata: {name: r, namespace: \"n\"}\nspec:\n  parentRefs: [{name: g}]\n  rules:"+rules)
	s.until("checked backend", func() bool {
		answer, body := s.ask("GET", "a.com", "/right", "")
		return answer.StatusCode == 200 && body == "example.com"
	})
	for _, path := range []string{"/wrong", "/lost", "/wrong"} {
		if answer, body := s.ask("GET", "a.com", path, ""); answer.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: %d %q", path, answer.StatusCode, body)
		}
	}
}
