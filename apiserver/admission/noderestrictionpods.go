package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

func (r nodeRestriction) judgePods(ctx context.Context, node string, a admission.Attributes) error {
	switch subresource, operation := a.GetSubresource(), a.GetOperation(); {
	case subresource == "" && operation == admission.Create:
		return r.judgeMirrorPod(ctx, node, a)
	case subresource == "" && operation == admission.Delete:
		return judgePodDeletion(node, a)
	case subresource == "":
		return fmt.Errorf("unexpected operation %q, node %q can only create and delete mirror pods", operation, node)
	case subresource == "status" && operation == admission.Update:
		return r.judgePodStatus(ctx, node, a)
	case subresource == "eviction" && operation == admission.Create:
		return r.judgeEviction(ctx, node, a)
	case subresource == "status" || subresource == "eviction":
		return fmt.Errorf("unexpected operation %q", operation)
	default:
		return fmt.Errorf("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", subresource)
	}
}

// judgeMirrorPod: a node shows pods that it runs from files of its own, and can reach
// nothing of the cluster through them.
func (r nodeRestriction) judgeMirrorPod(ctx context.Context, node string, a admission.Attributes) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	switch {
	case !ok:
		return fmt.Errorf("unexpected type %T", a.GetObject())
	case !isMirror(pod):
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, node)
	case pod.Spec.NodeName != node:
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	case len(pod.OwnerReferences) > 1:
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", node)
	case len(pod.OwnerReferences) == 0:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	}
	if err := r.judgeMirrorOwner(ctx, node, &pod.OwnerReferences[0]); err != nil {
		return err
	}
	if what := objectReference(pod); what != "" {
		return fmt.Errorf("node %q can not create pods that reference %s", node, what)
	}
	return nil
}

func (r nodeRestriction) judgeMirrorOwner(ctx context.Context, node string, owner *metav1.OwnerReference) error {
	switch {
	case owner.APIVersion != corev1.SchemeGroupVersion.String() || owner.Kind != "Node" || owner.Name != node:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	case owner.Controller == nil || !*owner.Controller:
		return fmt.Errorf("node %q can only create pods with a controller owner reference set to itself", node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return fmt.Errorf("node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	object, found, err := r.nodes.get(ctx, "", node)
	if err != nil {
		return fmt.Errorf("error looking up node %s to verify uid: %w", node, err)
	}
	if !found {
		return asIs{apierrors.NewNotFound(corev1.Resource("node"), node)}
	}
	if owner.UID != object.UID {
		return fmt.Errorf("node %s UID mismatch: expected %s got %s", node, owner.UID, object.UID)
	}
	return nil
}

// objectReference names a kind of which the pod reads an object, or "".
func objectReference(pod *corev1.Pod) string {
	used := referencesOf(pod)
	switch {
	case pod.Spec.ServiceAccountName != "":
		return "serviceaccounts"
	case len(used.secrets) > 0:
		return "secrets"
	case used.configMaps:
		return "configmaps"
	case len(pod.Spec.ResourceClaims) > 0:
		return "resourceclaims"
	}
	for i := range pod.Spec.Volumes {
		if what := volumeReference(&pod.Spec.Volumes[i]); what != "" {
			return what
		}
	}
	return ""
}

func volumeReference(v *corev1.Volume) string {
	switch {
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)"
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)"
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims"
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)"
	case v.AzureFile != nil:
		return "secrets (via azureFile volumes)"
	}
	for _, p := range projections(*v) {
		switch {
		case p.ServiceAccountToken != nil:
			return "serviceaccounts (via projected volumes)"
		case p.ClusterTrustBundle != nil:
			return "clustertrustbundles"
		case p.PodCertificate != nil:
			return "podcertificates"
		}
	}
	return ""
}

func judgePodDeletion(node string, a admission.Attributes) error {
	pod, ok := a.GetOldObject().(*corev1.Pod)
	if !ok || pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only delete pods with spec.nodeName set to itself", node)
	}
	return nil
}

func (r nodeRestriction) judgePodStatus(ctx context.Context, node string, a admission.Attributes) error {
	old, ok := a.GetOldObject().(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.GetOldObject())
	}
	if old.Spec.NodeName != node {
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.GetObject())
	}
	is, was := &pod.Status, &old.Status
	switch {
	case !maps.Equal(pod.Labels, old.Labels):
		return fmt.Errorf("node %q cannot update labels through pod status", node)
	case !maps.Equal(pod.Annotations, old.Annotations):
		return fmt.Errorf("node %q cannot update annotations through pod status", node)
	case !slices.Equal(pod.Finalizers, old.Finalizers):
		return fmt.Errorf("node %q cannot update finalizers through pod status", node)
	case !equality.Semantic.DeepEqual(is.ResourceClaimStatuses, was.ResourceClaimStatuses):
		return fmt.Errorf("node %q cannot update resource claim statues", node) // upstream's spelling
	case !equality.Semantic.DeepEqual(is.ExtendedResourceClaimStatus, was.ExtendedResourceClaimStatus):
		return fmt.Errorf("node %q cannot update extended resource claim status", node)
	case !equality.Semantic.DeepEqual(is.NodeAllocatableResourceClaimStatuses, was.NodeAllocatableResourceClaimStatuses):
		return fmt.Errorf("node %q cannot update node allocatable resource claim statuses", node)
	}
	return r.judgePodAddresses(ctx, node, pod, old)
}

func (r nodeRestriction) judgeEviction(ctx context.Context, node string, a admission.Attributes) error {
	name := a.GetName()
	if eviction, ok := a.GetObject().(*policyv1.Eviction); ok && name == "" {
		name = eviction.Name
	}
	if name == "" {
		return errors.New("could not determine pod from request data")
	}
	pod, err := r.pod(ctx, a.GetNamespace(), name)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %s can only evict pods with spec.nodeName set to itself", node)
	}
	return nil
}

// pod returns a pod, or NotFound as it is.
func (r nodeRestriction) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, found, err := r.pods.get(ctx, namespace, name)
	if err == nil && !found {
		err = asIs{apierrors.NewNotFound(podsResource, name)}
	}
	return pod, err
}
