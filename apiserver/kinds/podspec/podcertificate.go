package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// The lifetimes that a pod may ask for its certificate (KEP-4317): an hour to 91
// days; a day from the signers of Kubernetes itself.
const (
	certificateSecondsMin           = 3600
	certificateSecondsMax           = 91 * 24 * 3600
	kubernetesCertificateSecondsMax = 24 * 3600
	kubernetesDomain                = "kubernetes.io"
)

var certificateKeyTypes = []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}

// validatePodCertificate judges a key and certificate that the node obtains for a pod.
func validatePodCertificate(c *corev1.PodCertificateProjection, path *field.Path) field.ErrorList {
	errs := rule.Required(c.SignerName, path.Child("signerName"))
	errs = append(errs, rule.OneOf(c.KeyType, certificateKeyTypes, path.Child("keyType"))...)
	if c.MaxExpirationSeconds != nil {
		errs = append(errs, validateCertificateSeconds(*c.MaxExpirationSeconds, c.SignerName, path.Child("maxExpirationSeconds"))...)
	}
	if len(certificatePaths(c)) == 0 {
		errs = append(errs, field.Required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	errs = append(errs, validateDescendingPath(c.CredentialBundlePath, path.Child("credentialBundlePath"))...)
	errs = append(errs, validateDescendingPath(c.KeyPath, path.Child("keyPath"))...)
	return append(errs, validateDescendingPath(c.CertificateChainPath, path.Child("certificateChainPath"))...)
}

func validateCertificateSeconds(seconds int32, signer string, at *field.Path) field.ErrorList {
	most := int32(certificateSecondsMax)
	if domain, _, _ := strings.Cut(signer, "/"); domain == kubernetesDomain || strings.HasSuffix(domain, "."+kubernetesDomain) {
		most = kubernetesCertificateSecondsMax
	}
	switch {
	case seconds < certificateSecondsMin:
		return field.ErrorList{
			field.Invalid(at, seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", certificateSecondsMin)),
		}
	case seconds > most:
		return field.ErrorList{field.Invalid(at, seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most))}
	}
	return nil
}

// certificatePaths are the files that a certificate is written to.
func certificatePaths(c *corev1.PodCertificateProjection) []string {
	var paths []string
	for _, file := range []string{c.CredentialBundlePath, c.KeyPath, c.CertificateChainPath} {
		if file != "" {
			paths = append(paths, file)
		}
	}
	return paths
}
