package devices

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// errNotCreated is upstream's.
var errNotCreated = errors.New("ResourceClaim not created yet")

// ClaimsOf are the pod's claims, each once. The error says, in upstream's words, which of them is not there or not for the pod.
func (w *World) ClaimsOf(pod *corev1.Pod) ([]*resourcev1.ResourceClaim, error) {
	var all []*resourcev1.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		claim, err := w.claimOf(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err
		}
		if claim != nil && !slices.Contains(all, claim) {
			all = append(all, claim)
		}
	}
	return all, nil
}

// claimOf finds the ResourceClaim of an entry; nil when its template asked for none.
func (w *World) claimOf(pod *corev1.Pod, entry *corev1.PodResourceClaim) (*resourcev1.ResourceClaim, error) {
	name := entry.ResourceClaimName
	if entry.ResourceClaimTemplateName != nil {
		status := statusOf(pod, entry.Name)
		if status == nil {
			return nil, fmt.Errorf("pod %q: %w", pod.Namespace+"/"+pod.Name, errNotCreated)
		}
		name = status.ResourceClaimName
	}
	if name == nil {
		return nil, nil
	}
	claim, err := w.claims.ResourceClaims(pod.Namespace).Get(*name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("could not find ResourceClaim %q", pod.Namespace+"/"+*name)
	case err != nil:
		return nil, err
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Errorf("resourceclaim %q is being deleted", claim.Name)
	case entry.ResourceClaimTemplateName != nil && !metav1.IsControlledBy(claim, pod):
		return nil, fmt.Errorf(
			"ResourceClaim %s/%s was not created for pod %s/%s (pod is not owner)",
			claim.Namespace,
			claim.Name,
			pod.Namespace,
			pod.Name,
		)
	}
	return claim, nil
}

// statusOf gives the status of one of the pod's resource claims; nil when there is none yet.
func statusOf(pod *corev1.Pod, name string) *corev1.PodResourceClaimStatus {
	for i := range pod.Status.ResourceClaimStatuses {
		if s := &pod.Status.ResourceClaimStatuses[i]; s.Name == name {
			return s
		}
	}
	return nil
}

// Chosen is what the claims, and that of Extended if it is not nil, get on a node that was found by the Search; nil if all have
// devices.
func Chosen(find Search, claims []*resourcev1.ResourceClaim, extended OnNode, node *corev1.Node) ([]Allocation, error) {
	var results []resourcev1.AllocationResult
	if find != nil {
		var err error
		if results, err = find(node); err != nil {
			return nil, err
		}
	}
	var all []Allocation
	for _, claim := range claims {
		a := Allocation{Claim: claim}
		if claim.Status.Allocation == nil {
			a.Result, results = &results[0], results[1:]
		}
		all = append(all, a)
	}
	if len(results) > 0 {
		claim, mappings, err := extended(node)
		if err != nil {
			return nil, err
		}
		all = append(all, Allocation{Claim: claim, Result: &results[0], Mappings: mappings})
	}
	return all, nil
}

// OnNode is Extended.On.
type OnNode func(*corev1.Node) (*resourcev1.ResourceClaim, []corev1.ContainerExtendedResourceRequest, error)

// Users are the waiting pods that use a claim, by the claim's namespace and name, each with what its owner knows of it. Most pods
// use none.
type Users[T any] map[types.NamespacedName]map[types.UID]T

// Add files a pod under its claims.
func (u Users[T]) Add(pod *corev1.Pod, value T) {
	for _, claim := range claimNames(pod) {
		if u[claim] == nil {
			u[claim] = map[types.UID]T{}
		}
		u[claim][pod.UID] = value
	}
}

// Remove forgets a pod that was added as it is given here.
func (u Users[T]) Remove(pod *corev1.Pod) {
	for _, claim := range claimNames(pod) {
		if delete(u[claim], pod.UID); len(u[claim]) == 0 {
			delete(u, claim)
		}
	}
}

func claimNames(pod *corev1.Pod) []types.NamespacedName {
	var names []types.NamespacedName
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names = append(names, types.NamespacedName{Namespace: pod.Namespace, Name: *name})
		}
	}
	return names
}

// Handler tells of each change of a claim, and whether it gave devices back: that may help all pods, any other its users only.
func Handler(changed func(claim types.NamespacedName, freed bool)) cache.ResourceEventHandlerFuncs {
	tell := func(before, after *resourcev1.ResourceClaim) {
		claim := after
		if claim == nil {
			claim = before
		}
		had, has := before != nil && before.Status.Allocation != nil, after != nil && after.Status.Allocation != nil
		freed := had && !has || after == nil && IsExtended(before) // that one stands in the way of its pod, which does not name it
		changed(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, freed)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(after any) { tell(nil, after.(*resourcev1.ResourceClaim)) },
		UpdateFunc: func(before, after any) { tell(before.(*resourcev1.ResourceClaim), after.(*resourcev1.ResourceClaim)) },
		DeleteFunc: func(before any) {
			if tombstone, ok := before.(cache.DeletedFinalStateUnknown); ok {
				before = tombstone.Obj
			}
			if claim, ok := before.(*resourcev1.ResourceClaim); ok {
				tell(claim, nil)
			}
		},
	}
}
