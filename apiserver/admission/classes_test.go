package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func classMeta(name, annotation string, age int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation: "true"}, CreationTimestamp: metav1.Unix(100-age, 0)}
}

func TestDefaultClasses(t *testing.T) {
	w := newWorld(t, allowAll, withNamespace(
		&storagev1.StorageClass{ObjectMeta: classMeta("old", defaultStorageClassAnnotation, 9)},
		&storagev1.StorageClass{ObjectMeta: classMeta("young", betaDefaultStorageClassAnnotation, 1)},
		&storagev1.StorageClass{ObjectMeta: named("other")},
		&networkingv1.IngressClass{ObjectMeta: classMeta("in", networkingv1.AnnotationIsDefaultIngressClass, 1)},
	)...)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: inNS("c")}
	if err := w.admit(t, request{obj: claim}); err != nil || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != "young" {
		t.Errorf("%v, class %v", err, claim.Spec.StorageClassName)
	}
	none := &corev1.PersistentVolumeClaim{ObjectMeta: inNS("d"), Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("")}}
	if err := w.admit(t, request{obj: none}); err != nil || *none.Spec.StorageClassName != "" {
		t.Errorf("%v, class %q", err, *none.Spec.StorageClassName)
	}
	ingress := &networkingv1.Ingress{ObjectMeta: inNS("i")}
	if err := w.admit(t, request{obj: ingress}); err != nil || ingress.Spec.IngressClassName == nil || *ingress.Spec.IngressClassName != "in" {
		t.Errorf("%v, class %v", err, ingress.Spec.IngressClassName)
	}
	legacy := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "ns", Annotations: map[string]string{ingressClassAnnotation: "x"}}}
	if err := w.admit(t, request{obj: legacy}); err != nil || legacy.Spec.IngressClassName != nil {
		t.Errorf("%v, class %v", err, legacy.Spec.IngressClassName)
	}
}

func TestStorageIsProtectedFromTheStart(t *testing.T) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Finalizers: []string{"kubernetes.io/pv-protection"}}}
	for plural, o := range map[string]resource.Object{
		"persistentvolumeclaims": &corev1.PersistentVolumeClaim{ObjectMeta: inNS("c")}, "persistentvolumes": volume,
		"volumeattributesclasses": &storagev1.VolumeAttributesClass{ObjectMeta: named("a")},
	} {
		gvr := schema.GroupVersionResource{Version: "v1", Resource: plural}
		if plural == "volumeattributesclasses" {
			gvr.Group = storagev1.GroupName
		}
		a := admission.NewAttributesRecord(o, nil, schema.GroupVersionKind{}, o.GetNamespace(), o.GetName(), gvr, "", admission.Create, nil, false, nil)
		if err := (storageObjectInUseProtection{}).Admit(t.Context(), a, nil); err != nil || len(o.GetFinalizers()) != 1 {
			t.Errorf("%s: %v, finalizers %v", plural, err, o.GetFinalizers())
		}
	}
}

func claimOf(class, size string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: inNS("c"), Status: corev1.PersistentVolumeClaimStatus{Phase: phase}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class,
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse(size)}},
	}}
}

func TestClaimResize(t *testing.T) {
	w := newWorld(t, allowAll, withNamespace(
		&storagev1.StorageClass{ObjectMeta: named("grows"), AllowVolumeExpansion: new(true)},
		&storagev1.StorageClass{ObjectMeta: named("stays")},
	)...)
	for name, c := range map[string]struct {
		class, size string
		phase       corev1.PersistentVolumeClaimPhase
		want        string
	}{
		"grows":     {"grows", "2Gi", corev1.ClaimBound, ""},
		"stays":     {"stays", "2Gi", corev1.ClaimBound, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"},
		"unbound":   {"grows", "2Gi", corev1.ClaimPending, "Only bound persistent volume claims can be expanded"},
		"unchanged": {"stays", "1Gi", corev1.ClaimPending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, w.admit(t, request{obj: claimOf(c.class, c.size, c.phase), old: claimOf(c.class, "1Gi", c.phase)}), c.want)
		})
	}
}

func TestLimitRanger(t *testing.T) {
	list := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(cpu)}
	}
	limits := &corev1.LimitRange{ObjectMeta: inNS("l"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: list("500m"), DefaultRequest: list("100m"), Min: list("50m"), Max: list("1"), MaxLimitRequestRatio: list("10")},
		{Type: corev1.LimitTypePod, Max: list("1500m")},
		{Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")}},
	}}}
	with := func(request, limit string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: list(request), Limits: list(limit)}
	}
	for name, c := range map[string]struct {
		containers []corev1.ResourceRequirements
		want       string
	}{
		"defaults":      {[]corev1.ResourceRequirements{{}}, ""},
		"too little":    {[]corev1.ResourceRequirements{with("10m", "100m")}, `pods "p" is forbidden: minimum cpu usage per Container is 50m, but request is 10m`},
		"too much":      {[]corev1.ResourceRequirements{with("1", "2")}, "maximum cpu usage per Container is 1, but limit is 2"},
		"ratio":         {[]corev1.ResourceRequirements{with("50m", "1")}, "cpu max limit to request ratio per Container is 10, but provided ratio is 20.000000"},
		"pod too large": {[]corev1.ResourceRequirements{with("800m", "800m"), with("800m", "800m")}, "maximum cpu usage per Pod is 1500m, but limit is 1600m"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, allowAll, withNamespace(limits)...)
			pod := podNamed("p", func(p *corev1.Pod) {
				p.Spec.Containers = nil
				for i, r := range c.containers {
					p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: string(rune('a' + i)), Resources: r})
				}
			})
			check(t, w.admit(t, request{obj: pod}), c.want)
			if name == "defaults" && (pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" ||
				pod.Annotations[limitRangerAnnotation] != "LimitRanger plugin set: cpu request for container a; cpu limit for container a") {
				t.Errorf("pod = %+v", pod)
			}
		})
	}
	w := newWorld(t, allowAll, withNamespace(limits)...)
	check(t, w.admit(t, request{obj: claimOf("", "2Gi", "")}), `persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi`)
}

func csrOf(t *testing.T, organization string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{organization}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: named("r"), Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}
}

func TestCertificates(t *testing.T) {
	may := func(names ...string) authorizer.AuthorizerFunc {
		return func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			for _, n := range names {
				if a.GetVerb()+" "+a.GetResource()+" "+a.GetName() == n {
					return authorizer.DecisionAllow, "", nil
				}
			}
			return authorizer.DecisionNoOpinion, "", nil
		}
	}
	csr := csrOf(t, "team")
	const signer = "example.com/s"
	pcr := &certificatesv1.PodCertificateRequest{ObjectMeta: inNS("r"), Spec: certificatesv1.PodCertificateRequestSpec{SignerName: signer}}
	answered := pcr.DeepCopy()
	answered.Status.CertificateChain = "c"
	bundle := &certificatesv1.ClusterTrustBundle{ObjectMeta: named("example.com:s:b"), Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer}}
	orphaned := bundle.DeepCopy()
	orphaned.Finalizers = []string{"x"}
	nobodys := bundle.DeepCopy()
	nobodys.Spec.SignerName = ""
	signed := csr.DeepCopy()
	signed.Status.Certificate = []byte("c")
	touched := csr.DeepCopy()
	touched.Labels = map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		r    request
		may  authorizer.AuthorizerFunc
		want string
	}{
		"approve":           {request{obj: csr, old: csr, subresource: "approval"}, may("approve signers kubernetes.io/kube-apiserver-client"), ""},
		"approve by domain": {request{obj: csr, old: csr, subresource: "approval"}, may("approve signers kubernetes.io/*"), ""},
		"approve not":       {request{obj: csr, old: csr, subresource: "approval"}, may(), `user not permitted to approve requests with signerName "kubernetes.io/kube-apiserver-client"`},
		"sign":              {request{obj: signed, old: csr, subresource: "status"}, may("sign signers kubernetes.io/kube-apiserver-client"), ""},
		"sign not":          {request{obj: signed, old: csr, subresource: "status"}, may("approve signers kubernetes.io/*"), `user not permitted to sign requests with signerName`},
		"label":             {request{obj: touched, old: csr, subresource: "status"}, may(), ""},
		"answer a pod":      {request{obj: answered, old: pcr, subresource: "status"}, may("sign signers example.com/*"), ""},
		"answer a pod not":  {request{obj: answered, old: pcr, subresource: "status"}, may(), `spec.signerName: Forbidden: User "u" is not permitted to "sign" for signer "example.com/s"`},
		"a pod unchanged":   {request{obj: pcr, old: pcr, subresource: "status"}, may(), ""},
		"attest":            {request{obj: bundle}, may("attest signers example.com/s"), ""},
		"attest not":        {request{obj: bundle}, may(), `user not permitted to attest for signerName "example.com/s"`},
		"attest nobody's":   {request{obj: nobodys}, may(), ""},
		"attest, collected": {request{obj: orphaned, old: bundle}, may(), ""},
		"team":              {request{obj: csr}, may(), ""},
		"masters":           {request{obj: csrOf(t, user.SystemPrivilegedGroup)}, may(), "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			c.r.who = &user.DefaultInfo{Name: "u"}
			check(t, newWorld(t, c.may).admit(t, c.r), c.want)
		})
	}
}

func TestNewNodesAreTainted(t *testing.T) {
	node := &corev1.Node{ObjectMeta: named("n")}
	w := newWorld(t, allowAll)
	for range 2 {
		if err := w.admit(t, request{obj: node}); err != nil || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != corev1.TaintNodeNotReady {
			t.Errorf("%v, taints = %v", err, node.Spec.Taints)
		}
	}
}

// BenchmarkConfigMap is what a write pays that no plugin cares about.
func BenchmarkConfigMap(b *testing.B) {
	w := newWorld(b, allowAll, withNamespace()...)
	cm := &corev1.ConfigMap{ObjectMeta: inNS("c")}
	w.names[w.kindOf(b, cm)] = corev1.SchemeGroupVersion.WithResource("configmaps")
	a := w.attributes(b, request{obj: cm, who: &user.DefaultInfo{Name: "u"}})
	chain := w.chain.(interface {
		admission.MutationInterface
		admission.ValidationInterface
	})
	b.ReportAllocs()
	for b.Loop() {
		if err := errors.Join(chain.Admit(b.Context(), a, nil), chain.Validate(b.Context(), a, nil)); err != nil {
			b.Fatal(err)
		}
	}
}
