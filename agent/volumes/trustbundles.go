package volumes

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNoBundles has upstream's words.
var errNoBundles = errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")

// addTrustBundle writes the trust anchors of one ClusterTrustBundle, or of those of a signer that a selector
// matches, each once (KEP-3257). An optional one that does not exist is an empty file.
func (m *Manager) addTrustBundle(
	ctx context.Context,
	in Input,
	files map[string]file,
	p *corev1.ClusterTrustBundleProjection,
	mode *int32,
) error {
	bundles, err := m.trustBundles(ctx, p)
	if err != nil && (p.Optional == nil || !*p.Optional || !isMissing(err)) {
		return err
	}
	files[p.Path] = privateFile(in.Pod, anchors(bundles), mode)
	return nil
}

func isMissing(err error) bool { return errors.Is(err, errNoBundles) || apierrors.IsNotFound(err) }

func (m *Manager) trustBundles(ctx context.Context, p *corev1.ClusterTrustBundleProjection) ([]certificatesv1.ClusterTrustBundle, error) {
	if p.Name != nil {
		one, err := m.Objects.TrustBundle(ctx, *p.Name)
		if err != nil {
			return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", err)
		}
		return []certificatesv1.ClusterTrustBundle{*one}, nil
	}
	if p.SignerName == nil {
		return nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	}
	selector, err := metav1.LabelSelectorAsSelector(p.LabelSelector) // none matches nothing, an empty one everything
	if err != nil {
		return nil, fmt.Errorf("while parsing label selector: %w", err)
	}
	if p.LabelSelector == nil {
		return nil, errNoBundles
	}
	bundles, err := m.Objects.TrustBundles(ctx, *p.SignerName, selector)
	if err == nil && len(bundles) == 0 {
		err = errNoBundles
	}
	return bundles, err
}

// anchors are the certificates of bundles, without what stands between them. Their order depends on nothing but
// themselves, so that a file changes only when they do.
func anchors(bundles []certificatesv1.ClusterTrustBundle) []byte {
	found := map[string]bool{}
	for i := range bundles {
		for _, der := range blocks([]byte(bundles[i].Spec.TrustBundle)) {
			found[string(der)] = true
		}
	}
	var out []byte
	for _, der := range slices.Sorted(maps.Keys(found)) {
		out = append(out, certificatePEM([]byte(der))...)
	}
	return out
}

// blocks are the contents of the PEM blocks in data.
func blocks(data []byte) [][]byte {
	var out [][]byte
	for {
		b, rest := pem.Decode(data)
		if b == nil {
			return out
		}
		out, data = append(out, b.Bytes), rest
	}
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
