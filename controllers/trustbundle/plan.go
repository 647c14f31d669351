package trustbundle

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Signer is the signer of what the API servers serve with.
const Signer = "kubernetes.io/kube-apiserver-serving"

// hashBytes is how much of the content's hash is in a name.
const hashBytes = 12

type trustBundle = certificatesv1.ClusterTrustBundle

// plan is what has to be done, in this order: at most one of create and update, then the deletions.
type plan struct {
	create, update *trustBundle
	remove         []*trustBundle
}

// planOf compares the bundles that there are with the PEM text that is wanted. It is pure.
func planOf(text string, have []*trustBundle) plan {
	name := nameOf(text)
	p := plan{create: &trustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: Signer, TrustBundle: text},
	}}
	for _, bundle := range have {
		switch {
		case bundle.Spec.SignerName != Signer:
		case bundle.Name != name:
			p.remove = append(p.remove, bundle)
		default:
			p.create = nil
			if bundle.Spec.TrustBundle != text {
				p.update = bundle.DeepCopy()
				p.update.Spec.TrustBundle = text
			}
		}
	}
	slices.SortFunc(p.remove, func(a, b *trustBundle) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// nameOf is upstream's name of a bundle: the signer's, and a hash of the content.
func nameOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s:%x", strings.ReplaceAll(Signer, "/", ":"), hash[:hashBytes])
}
