package volumes

import (
	"context"
	"encoding/pem"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func (s *shelf) TrustBundle(_ context.Context, name string) (*certificatesv1.ClusterTrustBundle, error) {
	if b, ok := s.bundles[name]; ok {
		return b, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "clustertrustbundles"}, name)
}

func (s *shelf) TrustBundles(_ context.Context, signer string, selector labels.Selector) ([]certificatesv1.ClusterTrustBundle, error) {
	var out []certificatesv1.ClusterTrustBundle
	for _, b := range s.bundles {
		if b.Spec.SignerName == signer && selector.Matches(labels.Set(b.Labels)) {
			out = append(out, *b)
		}
	}
	return out, nil
}

// bundleOf has one anchor for each word, with text between them.
func bundleOf(signer, zone string, words ...string) *certificatesv1.ClusterTrustBundle {
	b := &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": zone}}}
	b.Spec.SignerName = signer
	for _, w := range words {
		b.Spec.TrustBundle += "a comment\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(w), Headers: map[string]string{"k": "v"}}))
	}
	return b
}

func TestTrustBundles(t *testing.T) {
	s := &shelf{bundles: map[string]*certificatesv1.ClusterTrustBundle{
		"plain": bundleOf("", "", "root"),
		"s:a":   bundleOf("s", "a", "one", "two"),
		"s:b":   bundleOf("s", "b", "two", "three"),
		"r:a":   bundleOf("r", "a", "four"),
	}}
	inZoneA := &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}
	nowhere := &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "c"}}
	for name, c := range map[string]struct {
		projection corev1.ClusterTrustBundleProjection
		want       string // anchors, in the order of the file
		err        string
	}{
		"by name":                  {corev1.ClusterTrustBundleProjection{Name: ptr.To("plain")}, "root", ""},
		"all of a signer":          {corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s"), LabelSelector: &metav1.LabelSelector{}}, "one three two", ""},
		"some of a signer":         {corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s"), LabelSelector: inZoneA}, "one two", ""},
		"missing":                  {corev1.ClusterTrustBundleProjection{Name: ptr.To("x")}, "", `while getting ClusterTrustBundle: clustertrustbundles "x" not found`},
		"missing, optional":        {corev1.ClusterTrustBundleProjection{Name: ptr.To("x"), Optional: ptr.To(true)}, "", ""},
		"no match":                 {corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s"), LabelSelector: nowhere}, "", "matched zero ClusterTrustBundles"},
		"no match, optional":       {corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s"), LabelSelector: nowhere, Optional: ptr.To(true)}, "", ""},
		"no selector is no match":  {corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s")}, "", "matched zero ClusterTrustBundles"},
		"neither name nor signer":  {corev1.ClusterTrustBundleProjection{Optional: ptr.To(true)}, "", "requires either name or signerName"},
		"no selector, but no need": {corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s"), Optional: ptr.To(true)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.projection.Path = "ca.pem"
			p := podWith(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &c.projection}}}})
			places, err := newManager(t, s).Mount(t.Context(), Input{Pod: p})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			content := read(t, places["a"].Path+"/ca.pem")
			for _, b := range blocks([]byte(content)) {
				words = append(words, string(b))
			}
			if got := strings.Join(words, " "); got != c.want || strings.Contains(content, "comment") || strings.Contains(content, "k: v") {
				t.Errorf("%q, in\n%s\nwant %q and nothing between", got, content, c.want)
			}
		})
	}
}

func TestOwnersOfPrivateFiles(t *testing.T) {
	user := func(id int64) *corev1.SecurityContext { return &corev1.SecurityContext{RunAsUser: &id} }
	pod := func(ofPod *corev1.PodSecurityContext, contexts ...*corev1.SecurityContext) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: ofPod}}
		for _, sc := range contexts {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{SecurityContext: sc})
		}
		return p
	}
	mixedInit := pod(nil, user(7))
	mixedInit.Spec.InitContainers = []corev1.Container{{SecurityContext: user(8)}}
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		owner *int64
		mode  uint32
	}{
		"nobody said":         {pod(nil, nil), nil, 0o644},
		"all as 7":            {pod(nil, user(7), user(7)), ptr.To(int64(7)), 0o600},
		"the pod as 7":        {pod(&corev1.PodSecurityContext{RunAsUser: ptr.To(int64(7))}, nil, nil), ptr.To(int64(7)), 0o600},
		"one of them is open": {pod(nil, user(7), nil), nil, 0o644},
		"two users":           {pod(nil, user(7), user(8)), nil, 0o644},
		"another user inits":  {mixedInit, nil, 0o644},
		"fsGroup":             {pod(&corev1.PodSecurityContext{FSGroup: ptr.To(int64(9))}, nil), nil, 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			got := privateFile(c.pod, nil, nil)
			if !ptr.Equal(got.owner, c.owner) || uint32(got.mode) != c.mode {
				t.Errorf("owner %v mode %v, want %v %o", got.owner, got.mode, c.owner, c.mode)
			}
		})
	}
}
