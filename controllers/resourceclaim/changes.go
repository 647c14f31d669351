package resourceclaim

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// byClaim files pods under the claims that their entries name or were given.
var byClaim = reconcile.Index{Name: "setpoint/resource-claim", Keys: func(o metav1.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	var keys []string
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			keys = append(keys, pod.Namespace+"/"+*name)
		}
	}
	return keys
}}

// byTemplate files pods under the templates of their claims.
var byTemplate = reconcile.Index{Name: "setpoint/resource-claim-template", Keys: func(o metav1.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	var keys []string
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimTemplateName != nil {
			keys = append(keys, pod.Namespace+"/"+*entry.ResourceClaimTemplateName)
		}
	}
	return keys
}}

// podChanged is the work for a pod, and for its claims when it does not need them any more.
func (c *controller) podChanged(before, after metav1.Object) []work {
	if pod, ok := after.(*corev1.Pod); ok {
		return c.workOf(pod)
	}
	if pod, ok := before.(*corev1.Pod); ok {
		return claimsOf(pod)
	}
	return nil
}

func (c *controller) workOf(pod *corev1.Pod) []work {
	var keys []work
	if isDone(pod) {
		keys = claimsOf(pod)
	}
	if c.needsWork(pod) {
		keys = append(keys, work{podWork, reconcile.KeyOf(pod)})
	}
	return keys
}

// claimsOf are the claims that a pod uses, also the one for its extended resources.
func claimsOf(pod *corev1.Pod) []work {
	var keys []work
	for name := range resourceclaim.PodClaims(pod) {
		keys = append(keys, work{claimWork, reconcile.Key{Namespace: pod.Namespace, Name: name}})
	}
	return keys
}

// isDone is true of a pod whose containers have ended for good or will never start.
func isDone(pod *corev1.Pod) bool {
	return podstate.Finished(pod) || pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

// mayNeedClaims is false of a pod that starts nothing any more.
func mayNeedClaims(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !isDone(pod) }

// needsWork is true of a pod that lacks a claim, or a reservation of a claim that is allocated.
func (c *controller) needsWork(pod *corev1.Pod) bool {
	if !mayNeedClaims(pod) {
		return false
	}
	for i := range pod.Spec.ResourceClaims {
		if c.lacks(pod, &pod.Spec.ResourceClaims[i]) {
			return true
		}
	}
	return false
}

func (c *controller) lacks(pod *corev1.Pod, entry *corev1.PodResourceClaim) bool {
	name, _, err := resourceclaim.Name(pod, entry)
	if err != nil || name == nil {
		return err != nil
	}
	claim, err := c.claims.Get(reconcile.Key{Namespace: pod.Namespace, Name: *name})
	if err != nil {
		return !apierrors.IsNotFound(err) || entry.ResourceClaimTemplateName != nil
	}
	return entry.ResourceClaimTemplateName != nil && !metav1.IsControlledBy(claim, pod) || unreserved(pod, claim)
}

// claimChanged is the work for a claim, and for the pods that use it.
func (c *controller) claimChanged(before, after metav1.Object) []work {
	claim, exists := after.(*resourcev1.ResourceClaim)
	if !exists {
		claim, _ = before.(*resourcev1.ResourceClaim)
	}
	if claim == nil {
		return nil
	}
	var keys []work
	if exists {
		keys = append(keys, work{claimWork, reconcile.KeyOf(claim)})
	}
	return append(keys, c.podsBy(byClaim, claim)...)
}

func (c *controller) templateChanged(_, after metav1.Object) []work {
	if after == nil {
		return nil
	}
	return c.podsBy(byTemplate, after)
}

// podsBy is the work for the pods that an index files under an object.
func (c *controller) podsBy(index reconcile.Index, o metav1.Object) []work {
	pods, err := c.pods.ByIndex(index, reconcile.KeyOf(o).String())
	if err != nil {
		c.env.Logger.Error("looking up pods failed", "err", err) // the index is declared, so it is there
	}
	var keys []work
	for _, pod := range pods {
		keys = append(keys, c.workOf(pod)...)
	}
	return keys
}
