package certificates

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mayHave reports whether the name of a node is free for whoever asks. One that has a Node
// is the node's own; and if that joined with a key, it is that key's. A name without a
// Node is not free either if another key was certified for it: its node may be about to
// register.
func (c *controller) mayHave(
	ctx context.Context,
	csr *certificatesv1.CertificateSigningRequest,
	request *x509.CertificateRequest,
	itself bool,
) (bool, error) {
	name := strings.TrimPrefix(request.Subject.CommonName, nodePrefix)
	node, err := c.env.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		key := c.NodeKey(node)
		return itself && (key == "" || key == hashOf(request)), nil
	}
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	if itself {
		return true, nil
	}
	return c.neverCertified(csr, request)
}

func (c *controller) neverCertified(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) (bool, error) {
	others, err := c.requests.List("", nil)
	if err != nil {
		return false, err
	}
	for _, other := range others {
		if other.UID == csr.UID || other.Spec.SignerName != csr.Spec.SignerName || !has(other, certificatesv1.CertificateApproved) {
			continue
		}
		if certified, err := parse(other); err == nil && certified.Subject.CommonName == request.Subject.CommonName &&
			hashOf(certified) != hashOf(request) {
			return false, nil
		}
	}
	return true, nil
}

func hashOf(request *x509.CertificateRequest) string {
	sum := sha256.Sum256(request.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}
