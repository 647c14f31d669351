package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

const csrPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

func csrBody(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return `{"metadata":{"name":"` + name + `"},"spec":{"username":"root","signerName":"example.com/signer","usages":["client auth"],"request":"` +
		base64.StdEncoding.EncodeToString(text) + `"}}`
}

// A request is approved by one subresource and signed by another; neither can do the
// other's work, and the object itself shows who asked.
func TestSigningRequestsInParts(t *testing.T) {
	server, _ := newServer(t)
	asker := &user.DefaultInfo{Name: "ada", Groups: []string{user.SystemPrivilegedGroup}}
	created := mustDo[certificatesv1.CertificateSigningRequest](t, server, call{method: "POST", path: csrPath, body: csrBody(t, "ada"), as: asker})
	if created.Spec.Username != "ada" || created.Generation != 0 {
		t.Errorf("created by %q, generation %d", created.Spec.Username, created.Generation)
	}
	merge := func(path, body string) answer {
		return call{method: "PATCH", path: csrPath + path, body: body, contentType: "application/merge-patch+json", as: asker}.do(t, server)
	}
	const approved = `{"metadata":{"labels":{"a":"b"}},"spec":{"username":"root"},"status":{"conditions":[{"type":"Approved","status":"True","reason":"Test"}]}}`
	if got := merge("/ada", approved); got.code != 200 || strings.Contains(got.body, "Approved") || strings.Contains(got.body, "root") {
		t.Errorf("the object itself: %d %s", got.code, got.body)
	}
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: `updates may not add a condition of type "Approved"`}.
		check(t, "signer approves", merge("/ada/status", approved))
	if got := merge("/ada/approval", approved); got.code != 200 {
		t.Errorf("approval: %d %s", got.code, got.body)
	}
	seen := mustDo[certificatesv1.CertificateSigningRequest](t, server, call{path: csrPath + "/ada/approval"})
	if len(seen.Status.Conditions) != 1 || seen.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Errorf("approved: %+v", seen.Status)
	}
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "only CERTIFICATE PEM blocks are allowed"}.
		check(t, "no certificate", merge("/ada/status", `{"status":{"certificate":"LS0tLS1CRUdJTiBYLS0tLS0KQUFBQQotLS0tLUVORCBYLS0tLS0K"}}`))
	if got := (call{path: csrPath + "/ada/blessing"}).do(t, server); got.code != 404 {
		t.Errorf("no such part: %d %s", got.code, got.body)
	}
}
