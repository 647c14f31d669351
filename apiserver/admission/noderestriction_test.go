package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

var (
	nodeA   = &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes"}}
	someone = &user.DefaultInfo{Name: "jane", Groups: []string{"system:authenticated"}}
)

// nodeCase is one request; words are what its refusal says, "" if it is let pass.
type nodeCase struct {
	who         user.Info
	resource    string // as in "/nodes" or "storage.k8s.io/csinodes/status"
	operation   admission.Operation
	object, old runtime.Object
	words       string
}

// nodeWorld is a store with nodes a and b, a pod on each, and what they use.
func nodeWorld(t *testing.T) *world {
	t.Helper()
	volume := func(v corev1.VolumeSource) corev1.Volume { return corev1.Volume{Name: "v", VolumeSource: v} }
	projected := func(p corev1.VolumeProjection) corev1.Volume {
		return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{p}}})
	}
	pod := func(name, node string, volumes ...corev1.Volume) *corev1.Pod {
		return podNamed(name, func(p *corev1.Pod) {
			p.UID, p.Spec.NodeName, p.Spec.ServiceAccountName, p.Spec.Volumes = types.UID(name), node, "default", volumes
		})
	}
	return newWorld(t, allowAll, withNamespace(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}},
		pod("mine", "a", projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault"}}),
			projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/good"}})),
		pod("claiming", "a", volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}})),
		pod("theirs", "b"),
		&corev1.PersistentVolumeClaim{ObjectMeta: inNS("disk"), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}},
		&corev1.PersistentVolume{
			ObjectMeta: named("pv"),
			Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"}}},
		},
		&storagev1.CSIDriver{ObjectMeta: named("csi.example.com"), Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "cloud"}}}},
	)...)
}

// judge runs the plugin as the chain does.
func (c nodeCase) judge(t *testing.T, w *world, judge authorizer.AuthorizerFunc) error {
	t.Helper()
	group, resource, subresource := splitResource(c.resource)
	name, about := "", c.object
	if about == nil {
		about = c.old
	}
	if o, ok := about.(metav1.Object); ok {
		name = o.GetName()
	}
	namespace := "ns"
	if resource == "leases" {
		namespace = about.(metav1.Object).GetNamespace()
	}
	a := admission.NewAttributesRecord(c.object, c.old, schema.GroupVersionKind{}, namespace, name,
		schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, subresource, c.operation, nil, false, c.who)
	r := newNodeRestriction(w.store, judge, nil)
	if err := r.Admit(t.Context(), a, nil); err != nil {
		return err
	}
	return r.Validate(t.Context(), a, nil)
}

func splitResource(text string) (group, resource, subresource string) {
	parts := [3]string{}
	n := 0
	for _, letter := range text {
		if letter == '/' {
			n++
			continue
		}
		parts[n] += string(letter)
	}
	return parts[0], parts[1], parts[2]
}

// run checks all cases; nobody has a role.
func run(t *testing.T, cases map[string]nodeCase) {
	t.Helper()
	w := nodeWorld(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { check(t, c.judge(t, w, noRoles), c.words) })
	}
}

func noRoles(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
}

func TestNodesAndTheirOwn(t *testing.T) {
	node := func(name string, change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "x"}}}
		for _, c := range change {
			c(n)
		}
		return n
	}
	label := func(key string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels[key] = "true" } }
	taint := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }
	owner := func(n *corev1.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }
	source := func(n *corev1.Node) { n.Spec.ConfigSource = &corev1.NodeConfigSource{} }
	ranged := func(n *corev1.Node) { n.Spec.PodCIDR, n.Spec.PodCIDRs = "0.0.0.0/1", []string{"0.0.0.0/1"} }
	second := func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"", "fd00::/8"} }
	lease := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	csiNode := func(name string) *storagev1.CSINode { return &storagev1.CSINode{ObjectMeta: named(name)} }
	slice := func(node string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: named("s"), Spec: resourcev1.ResourceSliceSpec{NodeName: &node}}
	}
	const leases, slices = "coordination.k8s.io/leases", "resource.k8s.io/resourceslices"
	apart, role := label("team.node-restriction.kubernetes.io/secure"), label("node-role.kubernetes.io/control-plane")
	run(t, map[string]nodeCase{
		"registers itself, with taints": {nodeA, "/nodes", admission.Create, node("a", taint), nil, ""},
		"registers another":             {nodeA, "/nodes", admission.Create, node("b"), nil, `node "a" is not allowed to modify node "b"`},
		"registers itself set apart": {
			nodeA,
			"/nodes",
			admission.Create,
			node("a", apart, role),
			nil,
			`node "a" is not allowed to set the following labels: node-role.kubernetes.io/control-plane, team.node-restriction.kubernetes.io/secure`,
		},
		"registers itself with an owner": {nodeA, "/nodes", admission.Create, node("a", owner), nil, "ownerReferences"},
		"registers with a config source": {nodeA, "/nodes", admission.Create, node("a", source), nil, `node "a" is not allowed to create pods with a non-nil configSource`},
		"takes a pod range":              {nodeA, "/nodes", admission.Create, node("a", ranged), nil, "podCIDR"},
		"gives itself a pod range":       {nodeA, "/nodes/status", admission.Update, node("a", ranged), node("a"), "podCIDR"},
		"gives itself a second one":      {nodeA, "/nodes", admission.Update, node("a", second), node("a"), "podCIDR"},
		"drops its pod range":            {nodeA, "/nodes", admission.Update, node("a"), node("a", ranged), "podCIDR"},
		"keeps its pod range":            {nodeA, "/nodes", admission.Update, node("a", ranged), node("a", ranged), ""},
		"labels itself":                  {nodeA, "/nodes", admission.Update, node("a", label("disk")), node("a"), ""},
		"tells its zone":                 {nodeA, "/nodes", admission.Update, node("a", label(corev1.LabelTopologyZone)), node("a"), ""},
		"gives itself a role":            {nodeA, "/nodes", admission.Update, node("a", role), node("a"), "is not allowed to modify labels: node-role.kubernetes.io/control-plane"},
		"drops what set it apart":        {nodeA, "/nodes/status", admission.Update, node("a"), node("a", apart), "is not allowed to modify labels"},
		"changes its taints":             {nodeA, "/nodes", admission.Update, node("a"), node("a", taint), `node "a" is not allowed to modify taints`},
		"gets an owner":                  {nodeA, "/nodes/status", admission.Update, node("a", owner), node("a"), `node "a" is not allowed to modify ownerReferences`},
		"changes another":                {nodeA, "/nodes/status", admission.Update, node("b"), node("b"), `node "a" is not allowed to modify node "b"`},
		"an administrator may":           {someone, "/nodes", admission.Update, node("b", apart, ranged), node("b"), ""},
		"creates its lease":              {nodeA, leases, admission.Create, lease("kube-node-lease", "a"), nil, ""},
		"creates another's lease":        {nodeA, leases, admission.Create, lease("kube-node-lease", "b"), nil, "can only access node lease with the same name as the requesting node"},
		"a lease elsewhere":              {nodeA, leases, admission.Update, lease("kube-system", "a"), lease("kube-system", "a"), `can only access leases in the "kube-node-lease" system namespace`},
		"creates its CSINode":            {nodeA, "storage.k8s.io/csinodes", admission.Create, csiNode("a"), nil, ""},
		"creates another's CSINode":      {nodeA, "storage.k8s.io/csinodes", admission.Create, csiNode("b"), nil, "can only access CSINode with the same name as the requesting node"},
		"deletes another's CSINode":      {nodeA, "storage.k8s.io/csinodes", admission.Delete, nil, csiNode("b"), "can only access CSINode"},
		"creates its ResourceSlice":      {nodeA, slices, admission.Create, slice("a"), nil, ""},
		"creates another's slice":        {nodeA, slices, admission.Create, slice("b"), nil, "can only create ResourceSlice with the same NodeName as the requesting node"},
		"creates everybody's slice":      {nodeA, slices, admission.Create, &resourcev1.ResourceSlice{}, nil, "can only create ResourceSlice"},
		"deletes another's slice":        {nodeA, slices, admission.Delete, nil, slice("b"), "can only delete ResourceSlice with the same NodeName as the requesting node"},
		"asks for its certificate":       {nodeA, csrs, admission.Create, signingRequest(t, "system:node:a", certificatesv1.KubeletServingSignerName), nil, ""},
		"asks for another's certificate": {
			nodeA,
			csrs,
			admission.Create,
			signingRequest(t, "system:node:b", certificatesv1.KubeAPIServerClientKubeletSignerName),
			nil,
			"can only create a node CSR with CN=system:node:a",
		},
		"asks for one of another signer": {nodeA, csrs, admission.Create, signingRequest(t, "x", "example.com/x"), nil, ""},
	})
}

const csrs = "certificates.k8s.io/certificatesigningrequests"

func signingRequest(t *testing.T, name, signer string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}
}

func TestNodesAndPods(t *testing.T) {
	pod := func(node string, change ...func(*corev1.Pod)) *corev1.Pod {
		return podNamed("p", append([]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.NodeName = node }}, change...)...)
	}
	mirror := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	ownedBy := func(uid types.UID, blocks *bool) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "a", UID: uid, Controller: new(true), BlockOwnerDeletion: blocks}}
		}
	}
	owned := ownedBy("a", nil)
	using := func(v corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}} }
	}
	label := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }
	annotation := func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }
	finalizer := func(p *corev1.Pod) { p.Finalizers = []string{"a.b/c"} }
	claim := func(p *corev1.Pod) {
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c", ResourceClaimName: new("theirs")}}
	}
	extended := func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "theirs"}
	}
	phase := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	eviction := func(name string) *policyv1.Eviction { return &policyv1.Eviction{ObjectMeta: inNS(name)} }
	run(t, map[string]nodeCase{
		"reports its pod":             {nodeA, "/pods/status", admission.Update, pod("a", phase), pod("a"), ""},
		"reports another's pod":       {nodeA, "/pods/status", admission.Update, pod("b"), pod("b"), `node "a" can only update pod status for pods with spec.nodeName set to itself`},
		"claims an unbound pod":       {nodeA, "/pods/status", admission.Update, pod("a"), pod(""), "spec.nodeName set to itself"},
		"labels its pod":              {nodeA, "/pods/status", admission.Update, pod("a", label), pod("a"), `node "a" cannot update labels through pod status`},
		"annotates its pod":           {nodeA, "/pods/status", admission.Update, pod("a", annotation), pod("a"), "cannot update annotations through pod status"},
		"keeps its pod for ever":      {nodeA, "/pods/status", admission.Update, pod("a", finalizer), pod("a"), "cannot update finalizers through pod status"},
		"lets its pod go":             {nodeA, "/pods/status", admission.Update, pod("a"), pod("a", finalizer), "cannot update finalizers through pod status"},
		"claims a device":             {nodeA, "/pods/status", admission.Update, pod("a", claim), pod("a"), `node "a" cannot update resource claim statues`},
		"claims an extended resource": {nodeA, "/pods/status", admission.Update, pod("a", extended), pod("a"), `node "a" cannot update extended resource claim status`},
		"changes its pod":             {nodeA, "/pods", admission.Update, pod("a"), pod("a"), `node "a" can only create and delete mirror pods`},
		"binds":                       {nodeA, "/pods/binding", admission.Create, &corev1.Binding{}, nil, "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"},
		"deletes its pod":             {nodeA, "/pods", admission.Delete, nil, pod("a"), ""},
		"deletes another's pod":       {nodeA, "/pods", admission.Delete, nil, pod("b"), `node "a" can only delete pods with spec.nodeName set to itself`},
		"another deletes any pod":     {someone, "/pods", admission.Delete, nil, pod("b"), ""},
		"evicts its pod":              {nodeA, "/pods/eviction", admission.Create, eviction("mine"), nil, ""},
		"evicts another's pod":        {nodeA, "/pods/eviction", admission.Create, eviction("theirs"), nil, "node a can only evict pods with spec.nodeName set to itself"},
		"evicts no pod":               {nodeA, "/pods/eviction", admission.Create, eviction("none"), nil, `pods "none" not found`},
		"creates a pod":               {nodeA, "/pods", admission.Create, pod("a", owned), nil, `pod does not have "kubernetes.io/config.mirror" annotation, node "a" can only create mirror pods`},
		"shows a pod":                 {nodeA, "/pods", admission.Create, pod("a", mirror, owned), nil, ""},
		"shows another's pod":         {nodeA, "/pods", admission.Create, pod("b", mirror, owned), nil, `node "a" can only create pods with spec.nodeName set to itself`},
		"shows a pod of nobody":       {nodeA, "/pods", admission.Create, pod("a", mirror), nil, "can only create pods with an owner reference set to itself"},
		"shows a pod of a former":     {nodeA, "/pods", admission.Create, pod("a", mirror, ownedBy("x", nil)), nil, "node a UID mismatch: expected x got a"},
		"blocks its deletion":         {nodeA, "/pods", admission.Create, pod("a", mirror, ownedBy("a", new(true))), nil, "must not set blockOwnerDeletion on an owner reference"},
		"shows one with an account": {
			nodeA,
			"/pods",
			admission.Create,
			pod("a", mirror, owned, func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }),
			nil,
			`node "a" can not create pods that reference serviceaccounts`,
		},
		"shows one with a secret": {
			nodeA,
			"/pods",
			admission.Create,
			pod("a", mirror, owned, using(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}})),
			nil,
			"can not create pods that reference secrets",
		},
		"shows one with a claim": {
			nodeA,
			"/pods",
			admission.Create,
			pod("a", mirror, owned, using(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}})),
			nil,
			"reference persistentvolumeclaims",
		},
		"shows one with a CSI volume": {
			nodeA,
			"/pods",
			admission.Create,
			pod("a", mirror, owned, using(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}})),
			nil,
			"reference csidrivers (via CSI volumes)",
		},
	})
}

func TestNodesAndWhatPodsUse(t *testing.T) {
	claim := func(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: inNS("disk")}
		for _, edit := range change {
			edit(c)
		}
		return c
	}
	larger := func(c *corev1.PersistentVolumeClaim) {
		c.Status.Capacity = corev1.ResourceList{"storage": apiresource.MustParse("1Gi")}
	}
	kept := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"a.b/c"} }
	token := func(pod string, uid types.UID, audiences ...string) *authenticationv1.TokenRequest {
		return &authenticationv1.TokenRequest{ObjectMeta: inNS("default"), Spec: authenticationv1.TokenRequestSpec{
			Audiences: audiences, BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: uid},
		}}
	}
	const tokens, certificates = "/serviceaccounts/token", "certificates.k8s.io/podcertificaterequests"
	certificate := func(node types.NodeName, pod, signer string, podUID types.UID) *certificatesv1.PodCertificateRequest {
		return &certificatesv1.PodCertificateRequest{ObjectMeta: inNS("r"), Spec: certificatesv1.PodCertificateRequestSpec{
			NodeName: node, NodeUID: types.UID(node), PodName: pod, PodUID: podUID, ServiceAccountName: "default", SignerName: signer,
		}}
	}
	run(t, map[string]nodeCase{
		"reports a size": {nodeA, "/persistentvolumeclaims/status", admission.Update, claim(larger), claim(), ""},
		"keeps a claim for ever": {
			nodeA,
			"/persistentvolumeclaims/status",
			admission.Update,
			claim(kept),
			claim(),
			`node "a" is not allowed to update fields other than status.quantity and status.conditions`,
		},
		"changes a claim":           {nodeA, "/persistentvolumeclaims", admission.Update, claim(), claim(), "may only update PVC status"},
		"a token for its pod":       {nodeA, tokens, admission.Create, token("mine", "mine", "vault"), nil, ""},
		"for another audience":      {nodeA, tokens, admission.Create, token("mine", "mine", "bank"), nil, `system:node:a is not authorized to request tokens for audience "bank"`},
		"for the API, unasked":      {nodeA, tokens, admission.Create, token("mine", "mine"), nil, `audience ""`},
		"for two":                   {nodeA, tokens, admission.Create, token("mine", "mine", "vault", "bank"), nil, "node may only request 0 or 1 audiences"},
		"for the pod's driver":      {nodeA, tokens, admission.Create, token("claiming", "claiming", "cloud"), nil, ""},
		"for another's driver":      {nodeA, tokens, admission.Create, token("mine", "mine", "cloud"), nil, `audience "cloud"`},
		"for another's pod":         {nodeA, tokens, admission.Create, token("theirs", "theirs", "vault"), nil, "node requested token bound to a pod scheduled on a different node"},
		"for a former pod":          {nodeA, tokens, admission.Create, token("mine", "old", "vault"), nil, "the UID in the bound object reference (old) does not match the UID in record"},
		"for no uid":                {nodeA, tokens, admission.Create, token("mine", "", "vault"), nil, "node requested token with a pod binding without a uid"},
		"for no pod":                {nodeA, tokens, admission.Create, &authenticationv1.TokenRequest{}, nil, "node requested token not bound to a pod"},
		"a certificate for its pod": {nodeA, certificates, admission.Create, certificate("a", "mine", "example.com/good", "mine"), nil, ""},
		"of another signer": {
			nodeA,
			certificates,
			admission.Create,
			certificate("a", "mine", "example.com/evil", "mine"),
			nil,
			`pod "ns/mine" does not mount a podCertificate projected volume for signer "example.com/evil"`,
		},
		"as another node": {
			nodeA,
			certificates,
			admission.Create,
			certificate("b", "mine", "example.com/good", "mine"),
			nil,
			`PodCertificateRequest.Spec.NodeName="b", which is not the requesting node "a"`,
		},
		"of another's pod": {nodeA, certificates, admission.Create, certificate("a", "theirs", "example.com/good", "theirs"), nil, `pod "ns/theirs" is not running on node "a"`},
		"of a former pod": {
			nodeA,
			certificates,
			admission.Create,
			certificate("a", "mine", "example.com/good", "old"),
			nil,
			`contains pod UID ("old") which differs from running pod "mine"`,
		},
		"answers its own certficate": {nodeA, certificates, admission.Update, certificate("a", "mine", "example.com/good", "mine"), nil, "unexpected operation UPDATE"},
	})
	t.Run("a role allows an audience", func(t *testing.T) {
		asked := nodeCase{nodeA, tokens, admission.Create, token("mine", "mine", "bank"), nil, ""}
		err := asked.judge(t, nodeWorld(t), func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetVerb() == "request-serviceaccounts-token-audience" && a.GetResource() == "bank" && a.GetName() == "default" && a.GetNamespace() == "ns" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})
		check(t, err, "")
	})
	t.Run("is refused with 403", func(t *testing.T) {
		err := nodeCase{nodeA, tokens, admission.Create, token("mine", "mine", "bank"), nil, ""}.judge(t, nodeWorld(t), noRoles)
		if !apierrors.IsForbidden(err) {
			t.Error(err)
		}
	})
}
