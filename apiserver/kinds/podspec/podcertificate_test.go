package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestPodCertificates(t *testing.T) {
	good := corev1.PodCertificateProjection{SignerName: "example.com/signer", KeyType: "ED25519", CredentialBundlePath: "bundle.pem"}
	for name, c := range map[string]struct {
		change func(*corev1.PodCertificateProjection)
		want   string
	}{
		"as it should be": {func(*corev1.PodCertificateProjection) {}, ""},
		"longest life":    {func(c *corev1.PodCertificateProjection) { c.MaxExpirationSeconds = new(int32(7862400)) }, ""},
		"too long":        {func(c *corev1.PodCertificateProjection) { c.MaxExpirationSeconds = new(int32(7862401)) }, "p.maxExpirationSeconds: Invalid value: 7862401: if provided, maxExpirationSeconds must be <= 7862400"},
		"too short":       {func(c *corev1.PodCertificateProjection) { c.MaxExpirationSeconds = new(int32(3599)) }, "p.maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600"},
		"a day from Kubernetes": {func(c *corev1.PodCertificateProjection) {
			c.SignerName, c.MaxExpirationSeconds = "kubernetes.io/pods", new(int32(86401))
		}, "p.maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400"},
		"no key":   {func(c *corev1.PodCertificateProjection) { c.KeyType = "DSA" }, `p.keyType: Unsupported value: "DSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`},
		"no file":  {func(c *corev1.PodCertificateProjection) { c.CredentialBundlePath = "" }, "p: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath"},
		"far file": {func(c *corev1.PodCertificateProjection) { c.KeyPath = "/etc/key" }, `p.keyPath: Invalid value: "/etc/key": must be a relative path`},
	} {
		t.Run(name, func(t *testing.T) {
			certificate := good
			c.change(&certificate)
			got := ""
			if err := validatePodCertificate(&certificate, field.NewPath("p")).ToAggregate(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
