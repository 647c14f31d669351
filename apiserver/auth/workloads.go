package auth

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

var (
	podsResource    = corev1.SchemeGroupVersion.WithResource("pods")
	volumesResource = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	// ofNodes are the resources whose objects belong to a node each.
	ofNodes = map[string]schema.GroupVersionResource{
		"resourceslices":         resourcev1.SchemeGroupVersion.WithResource("resourceslices"),
		"volumeattachments":      storagev1.SchemeGroupVersion.WithResource("volumeattachments"),
		"podcertificaterequests": certificatesv1.SchemeGroupVersion.WithResource("podcertificaterequests"),
	}
)

// Workloads tracks which objects each node needs, by the pods that are bound to it: a node may read the Secrets
// of its pods and no others. It is safe for concurrent use; until Run has read the store, nodes may read none.
type Workloads struct {
	store        *storage.Store
	pods         *storage.Follower
	certificates *ingressCertificates
	gateways     func(resource, namespace, name string) bool

	mu    sync.RWMutex
	users map[reference]map[string]int // object to node to how many of its pods use it
	nodes map[podName]string           // every pod's node, "" for none
}

// reference is an object that a pod uses, by its resource.
type reference struct{ resource, namespace, name string }

type podName struct{ namespace, name string }

// NewWorkloads returns an index over the pods in the store.
func NewWorkloads(store *storage.Store, logger *slog.Logger) *Workloads {
	w := &Workloads{store: store, users: map[reference]map[string]int{}, nodes: map[podName]string{}}
	w.pods = store.Table(podsResource).Follow(w.podChanged, logger)
	w.certificates = newIngressCertificates(store, logger)
	return w
}

// OfGateways says how to find out whether a Secret is the certificate of a Gateway that nodes serve, or a ConfigMap has the authorities
// by which they judge its backends: custom resources are not this package's. Few requests ask. It is called before the first of
// them; without it none is.
func (w *Workloads) OfGateways(named func(resource, namespace, name string) bool) { w.gateways = named }

// isCertificate tells whether a node reads the Secret because it serves an Ingress or a Gateway.
func (w *Workloads) isCertificate(node, namespace, secret string) bool {
	return (w.certificates.names(namespace, secret) || w.ofGateways(secretResource, namespace, secret)) && w.serves(node)
}

// isAuthority tells whether a node reads the ConfigMap because it judges backends of Gateways by it.
func (w *Workloads) isAuthority(node, namespace, configMap string) bool {
	return w.ofGateways(configMapResource, namespace, configMap) && w.serves(node)
}

// serves tells whether a node serves Ingresses and Gateways. All Nodes are looked at only for one that has ports and no label of its own.
func (w *Workloads) serves(node string) bool {
	if !w.store.Serves(nodesResource) {
		return false
	}
	nodes := w.store.Table(nodesResource)
	found, err := nodes.Get(context.Background(), "", node, "0")
	if err != nil {
		return false
	}
	self := found.Object().(*corev1.Node)
	if _, labelled := self.Labels[reserved.EdgeLabel]; labelled || !reserved.EdgesOf(nil).Serves(self) {
		return reserved.EdgesOf([]*corev1.Node{self}).Serves(self)
	}
	page, err := nodes.List(context.Background(), storage.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false
	}
	all := make([]*corev1.Node, len(page.Items))
	for i, item := range page.Items {
		all[i] = item.Object().(*corev1.Node)
	}
	return reserved.EdgesOf(all).Serves(self)
}

func (w *Workloads) ofGateways(resource, namespace, name string) bool {
	return w.gateways != nil && w.gateways(resource, namespace, name)
}

// Run follows the store until ctx ends.
func (w *Workloads) Run(ctx context.Context) {
	var children sync.WaitGroup
	defer children.Wait()
	children.Go(func() { w.certificates.run(ctx) })
	w.pods.Run(ctx)
}

// CatchUp waits until all changes up to the revision are known, or ctx ends.
func (w *Workloads) CatchUp(ctx context.Context, revision uint64) error {
	if err := w.certificates.reach(ctx, revision); err != nil {
		return err
	}
	return w.pods.Reach(ctx, revision)
}

// NodeOf returns the node a pod is bound to ("": to none); found is false when there is
// no such pod.
func (w *Workloads) NodeOf(namespace, name string) (node string, found bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	node, found = w.nodes[podName{namespace, name}]
	return node, found
}

func (w *Workloads) uses(node string, ref reference) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.users[ref][node] > 0
}

// usesVolume looks at the claim that the volume is bound to.
func (w *Workloads) usesVolume(node, volume string) bool {
	if !w.store.Serves(volumesResource) {
		return false
	}
	found, err := w.store.Table(volumesResource).Get(context.Background(), "", volume, "0")
	if err != nil {
		return false
	}
	claim := found.Object().(*corev1.PersistentVolume).Spec.ClaimRef
	return claim != nil && w.uses(node, reference{claimResource, claim.Namespace, claim.Name})
}

// usesVolumeSecret looks through the volumes for one that names the Secret and that the node uses. Few requests come here: only
// those for Secrets that no pod names.
func (w *Workloads) usesVolumeSecret(node, namespace, name string) bool {
	if name == "" || !w.store.Serves(volumesResource) {
		return false
	}
	page, err := w.store.Table(volumesResource).List(context.Background(), storage.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(page.Items, func(item *storage.Cached) bool {
		volume := item.Object().(*corev1.PersistentVolume)
		return namesSecret(volume.Spec.CSI, namespace, name) && w.usesVolume(node, volume.Name)
	})
}

// namesSecret: those of the controllers (publish, expand) are not for nodes.
func namesSecret(s *corev1.CSIPersistentVolumeSource, namespace, name string) bool {
	if s == nil {
		return false
	}
	return slices.ContainsFunc([]*corev1.SecretReference{s.NodeStageSecretRef, s.NodePublishSecretRef, s.NodeExpandSecretRef},
		func(ref *corev1.SecretReference) bool {
			return ref != nil && ref.Namespace == namespace && ref.Name == name
		})
}

// nodeNamedBy returns the node to which an object belongs by its spec, or "".
func (w *Workloads) nodeNamedBy(resource, namespace, name string) string {
	gvr, ok := ofNodes[resource]
	if !ok || !w.store.Serves(gvr) {
		return ""
	}
	found, err := w.store.Table(gvr).Get(context.Background(), namespace, name, "0")
	if err != nil {
		return ""
	}
	switch object := found.Object().(type) {
	case *resourcev1.ResourceSlice:
		if object.Spec.NodeName != nil {
			return *object.Spec.NodeName
		}
	case *storagev1.VolumeAttachment:
		return object.Spec.NodeName
	case *certificatesv1.PodCertificateRequest:
		return string(object.Spec.NodeName)
	}
	return ""
}

// podChanged keeps the index. What a pod uses changes only with its generation, and
// its status, which changes often, only with claims made for it.
func (w *Workloads) podChanged(was, is resource.Object) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	if before != nil && after != nil && sameUse(before, after) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if before != nil {
		w.count(before, -1)
		delete(w.nodes, podName{before.Namespace, before.Name})
	}
	if after != nil {
		w.count(after, 1)
		w.nodes[podName{after.Namespace, after.Name}] = after.Spec.NodeName
	}
}

func sameUse(a, b *corev1.Pod) bool {
	return a.UID == b.UID && a.Spec.NodeName == b.Spec.NodeName && a.Generation == b.Generation &&
		resourceclaim.PodStatusEqual(a.Status.ResourceClaimStatuses, b.Status.ResourceClaimStatuses) &&
		resourceclaim.PodExtendedStatusEqual(a.Status.ExtendedResourceClaimStatus, b.Status.ExtendedResourceClaimStatus)
}

func (w *Workloads) count(pod *corev1.Pod, by int) {
	node := pod.Spec.NodeName
	if node == "" {
		return
	}
	for ref := range referencesOf(pod) {
		nodes := w.users[ref]
		if nodes == nil {
			nodes = make(map[string]int, 1)
			w.users[ref] = nodes
		}
		if nodes[node] += by; nodes[node] == 0 {
			delete(nodes, node)
		}
		if len(nodes) == 0 {
			delete(w.users, ref)
		}
	}
}
