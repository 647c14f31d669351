package admission

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/trust"
)

var (
	leasesResource   = schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}
	csiNodesResource = schema.GroupResource{Group: storagev1.GroupName, Resource: "csinodes"}
	slicesResource   = schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceslices"}
	requestsResource = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
	accountsResource = corev1.Resource("serviceaccounts")
)

// nodeRestriction judges what nodes write by the objects themselves, which the authorizer
// cannot see: a node writes what is its own or its pods', and of that only what is a
// node's to say. The rules and their words are upstream's; a node may neither set its
// podCIDR, which becomes a route on every machine, nor change annotations and
// finalizers of pods through their status.
type nodeRestriction struct {
	authorizer authorizer.Authorizer
	pods       objects[*corev1.Pod]
	nodes      objects[*corev1.Node]
	accounts   objects[*corev1.ServiceAccount]
	drivers    objects[*storagev1.CSIDriver]
	claims     objects[*corev1.PersistentVolumeClaim]
	volumes    objects[*corev1.PersistentVolume]
	services   objects[*corev1.Service]
	ranges     objects[*networkingv1.ServiceCIDR]
	book       *reserved.Book
}

// newNodeRestriction takes a book in which servers are; nil: none is known.
func newNodeRestriction(store *storage.Store, judge authorizer.Authorizer, book *reserved.Book) nodeRestriction {
	if book == nil {
		book = reserved.New()
	}
	core := corev1.SchemeGroupVersion
	return nodeRestriction{
		authorizer: judge,
		pods:       objectsOf[*corev1.Pod](store, core.WithResource("pods")),
		nodes:      objectsOf[*corev1.Node](store, core.WithResource("nodes")),
		accounts:   objectsOf[*corev1.ServiceAccount](store, core.WithResource("serviceaccounts")),
		drivers:    objectsOf[*storagev1.CSIDriver](store, storagev1.SchemeGroupVersion.WithResource("csidrivers")),
		claims:     objectsOf[*corev1.PersistentVolumeClaim](store, core.WithResource("persistentvolumeclaims")),
		volumes:    objectsOf[*corev1.PersistentVolume](store, core.WithResource("persistentvolumes")),
		services:   objectsOf[*corev1.Service](store, core.WithResource("services")),
		ranges:     objectsOf[*networkingv1.ServiceCIDR](store, networkingv1.SchemeGroupVersion.WithResource("servicecidrs")),
		book:       book,
	}
}

// Handles implements admission.Interface.
func (nodeRestriction) Handles(operation admission.Operation) bool {
	return operation != admission.Connect
}

// Admit implements admission.MutationInterface. It changes nothing; as upstream it judges
// before what a request says is found valid.
func (r nodeRestriction) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return nil
	}
	return r.judge(ctx, a)
}

// Validate implements admission.ValidationInterface: who deletes is judged when it is
// known what.
func (r nodeRestriction) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Delete {
		return nil
	}
	return r.judge(ctx, a)
}

// judge answers Forbidden, unless a rule found that the request may succeed later.
func (r nodeRestriction) judge(ctx context.Context, a admission.Attributes) error {
	if a.GetUserInfo() == nil {
		return nil
	}
	node, ok := auth.NodeOf(a.GetUserInfo())
	if !ok {
		return nil
	}
	err := r.judgeNode(ctx, node, a)
	if as, ok := errors.AsType[asIs](err); ok {
		return as.error
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// asIs is an error that is not turned into Forbidden.
type asIs struct{ error }

func (r nodeRestriction) judgeNode(ctx context.Context, node string, a admission.Attributes) error {
	switch a.GetResource().GroupResource() {
	case podsResource:
		return r.judgePods(ctx, node, a)
	case nodesResource:
		if err := judgeNodeObject(ctx, node, a); err != nil {
			return err
		}
		if err := r.judgeAddresses(ctx, node, a); err != nil {
			return err
		}
		return r.judgeTunnelKey(ctx, node, a)
	case claimsResource:
		return judgeClaimStatus(node, a)
	case accountsResource:
		return r.judgeToken(ctx, node, a)
	case podCertificatesResource:
		return r.judgePodCertificate(ctx, node, a)
	case leasesResource:
		return judgeLease(node, a)
	case csiNodesResource:
		return requireName(node, a, "can only access CSINode with the same name as the requesting node")
	case slicesResource:
		return judgeSlice(node, a)
	case requestsResource:
		return judgeSigningRequest(node, a)
	}
	return nil
}

// nameOf is the object's name, also for a create whose request carries none.
func nameOf(a admission.Attributes) string {
	if object, ok := a.GetObject().(metav1.Object); ok && a.GetOperation() == admission.Create {
		return object.GetName()
	}
	return a.GetName()
}

func requireName(node string, a admission.Attributes, otherwise string) error {
	if nameOf(a) != node {
		return errors.New(otherwise)
	}
	return nil
}

func judgeLease(node string, a admission.Attributes) error {
	if a.GetNamespace() != corev1.NamespaceNodeLease {
		return fmt.Errorf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	return requireName(node, a, "can only access node lease with the same name as the requesting node")
}

func judgeNodeObject(ctx context.Context, node string, a admission.Attributes) error {
	if name := nameOf(a); name != node {
		return fmt.Errorf("node %q is not allowed to modify node %q", node, name)
	}
	object, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return nil
	}
	old, ok := a.GetOldObject().(*corev1.Node)
	if created := !ok || a.GetOperation() == admission.Create; created {
		return judgeNewNode(ctx, node, object)
	}
	switch {
	case object.Spec.ConfigSource != nil && !equality.Semantic.DeepEqual(object.Spec.ConfigSource, old.Spec.ConfigSource):
		return fmt.Errorf("node %q is not allowed to update configSource to a new non-nil configSource", node)
	case !equality.Semantic.DeepEqual(object.Spec.Taints, old.Spec.Taints):
		return fmt.Errorf("node %q is not allowed to modify taints", node)
	case object.Spec.PodCIDR != old.Spec.PodCIDR || !slices.Equal(object.Spec.PodCIDRs, old.Spec.PodCIDRs):
		return fmt.Errorf("node %q is not allowed to modify podCIDR", node)
	case !equality.Semantic.DeepEqual(object.OwnerReferences, old.OwnerReferences):
		return fmt.Errorf("node %q is not allowed to modify ownerReferences", node)
	}
	if forbidden := forbiddenLabels(object.Labels, old.Labels); len(forbidden) > 0 {
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(forbidden, ", "))
	}
	return judgeNodeKey(node, object, old)
}

func judgeNewNode(ctx context.Context, node string, object *corev1.Node) error {
	switch {
	case object.Spec.ConfigSource != nil:
		return fmt.Errorf("node %q is not allowed to create pods with a non-nil configSource", node)
	case object.Spec.PodCIDR != "" || len(object.Spec.PodCIDRs) > 0:
		return fmt.Errorf("node %q is not allowed to set podCIDR", node)
	case len(object.OwnerReferences) > 0:
		return fmt.Errorf("node %q is not allowed to set ownerReferences", node)
	}
	if forbidden := forbiddenLabels(object.Labels, nil); len(forbidden) > 0 {
		return fmt.Errorf("node %q is not allowed to set the following labels: %s", node, strings.Join(forbidden, ", "))
	}
	return judgeNewNodeKey(ctx, node, object)
}

// forbiddenLabels are the changed ones by which administrators set nodes apart, and those
// of Kubernetes that are not a node's own.
func forbiddenLabels(labels, old map[string]string) []string {
	forbidden := sets.New[string]()
	look := func(a, b map[string]string) {
		for key, value := range a {
			if other, same := b[key]; (!same || other != value) && restrictedLabel(key) {
				forbidden.Insert(key)
			}
		}
	}
	look(labels, old)
	look(old, labels)
	return sets.List(forbidden)
}

func restrictedLabel(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	below := func(domain string) bool { return found && (prefix == domain || strings.HasSuffix(prefix, "."+domain)) }
	return below(corev1.LabelNamespaceNodeRestriction) || (below("kubernetes.io") || below("k8s.io")) && !kubeletapis.IsKubeletLabel(key)
}

// judgeSlice: the authorizer lets a node create any and delete several at once.
func judgeSlice(node string, a admission.Attributes) error {
	var object any
	verb := "create"
	switch a.GetOperation() {
	case admission.Create:
		object = a.GetObject()
	case admission.Delete:
		object, verb = a.GetOldObject(), "delete"
	default:
		return nil
	}
	slice, ok := object.(*resourcev1.ResourceSlice)
	if !ok || slice.Spec.NodeName == nil || *slice.Spec.NodeName != node {
		return fmt.Errorf("can only %s ResourceSlice with the same NodeName as the requesting node", verb)
	}
	return nil
}

// judgeSigningRequest: a node asks for certificates of its own name only.
func judgeSigningRequest(node string, a admission.Attributes) error {
	request, ok := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	if !ok || a.GetOperation() != admission.Create {
		return nil
	}
	if signer := request.Spec.SignerName; signer != certificatesv1.KubeletServingSignerName &&
		signer != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return errors.New("unable to parse csr: PEM block type must be CERTIFICATE REQUEST")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return fmt.Errorf("unable to parse csr: %w", err)
	}
	if asked.Subject.CommonName != trust.NodeUser(node) {
		return fmt.Errorf("can only create a node CSR with CN=%s", trust.NodeUser(node))
	}
	return nil
}
