package certificates

import "strings"

// ofKubernetes: the signers of the project itself.
func ofKubernetes(signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
}
