package storageprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

func (c *controller) claimSources() []reconcile.Source {
	return []reconcile.Source{reconcile.Self(c.claims), reconcile.Changes(c.pods, touched)}
}

// touched are the claims of a pod that has come or gone, or may be done with them.
func touched(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Pod)
	is, _ := after.(*corev1.Pod)
	if was != nil && is != nil && was.UID == is.UID && ended(was) == ended(is) && !shutDown(is) {
		return nil
	}
	var keys []reconcile.Key
	for _, pod := range []*corev1.Pod{was, is} {
		if pod == nil {
			continue
		}
		for _, name := range claimsOf(pod) {
			keys = append(keys, reconcile.Key{Namespace: pod.Namespace, Name: name})
		}
	}
	return keys
}

// claimsOf are the names of the claims that a pod has, or has made for itself.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, ephemeral.VolumeClaimName(pod, v))
		}
	}
	return names
}

// use is a way to use a claim.
type use = func(*corev1.Pod, *corev1.PersistentVolumeClaim) bool

// claimUsed asks the cache first: its yes is enough, its no is not.
func (c *controller) claimUsed(ctx context.Context, claim *corev1.PersistentVolumeClaim, uses use) (bool, error) {
	if used, err := c.cachedUse(claim, uses); used || err != nil {
		return used, err
	}
	live, err := c.env.Client.CoreV1().Pods(claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(live.Items, func(pod corev1.Pod) bool { return uses(&pod, claim) }), nil
}

func (c *controller) cachedUse(claim *corev1.PersistentVolumeClaim, uses use) (bool, error) {
	cached, err := c.pods.ByIndex(byClaim, claim.Namespace+"/"+claim.Name)
	return slices.ContainsFunc(cached, func(pod *corev1.Pod) bool { return uses(pod, claim) }), err
}

// uses reports whether a node may have the claim for a pod. An agent starts no pod
// with a claim that is being deleted, so only pods that have a node count. A claim that
// a pod made for itself may go before the pod: it is waited for by nobody else.
func uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName == claim.Name
		}
		return v.Ephemeral != nil && !shutDown(pod) && ephemeral.VolumeClaimName(pod, &v) == claim.Name &&
			ephemeral.VolumeIsForPod(pod, claim) == nil
	})
}

// shutDown reports whether the agent is done with a pod, or was told not to wait.
func shutDown(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

func (c *controller) classSources() []reconcile.Source {
	return []reconcile.Source{
		reconcile.Self(c.classes), reconcile.Changes(c.claims, classesGivenUp), reconcile.Changes(c.volumes, classesGivenUp),
	}
}

// classesGivenUp are the classes of a claim or volume before a change.
func classesGivenUp(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	now := classesOf(after)
	for _, name := range classesOf(before) {
		if !slices.Contains(now, name) {
			keys = append(keys, reconcile.Key{Name: name})
		}
	}
	return keys
}

// classesOf are the attribute classes that a claim or volume has or is to get.
func classesOf(o metav1.Object) []string {
	var names []string
	add := func(name *string) {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		add(o.Spec.VolumeAttributesClassName)
		add(o.Status.CurrentVolumeAttributesClassName)
		if o.Status.ModifyVolumeStatus != nil {
			add(&o.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName)
		}
	case *corev1.PersistentVolume:
		add(o.Spec.VolumeAttributesClassName)
	}
	return names
}

func (c *controller) classUsed(name string) (bool, error) {
	volumes, err := c.volumes.List("", nil)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(volumes, func(v *corev1.PersistentVolume) bool { return slices.Contains(classesOf(v), name) }) {
		return true, nil
	}
	claims, err := c.claims.List("", nil)
	return slices.ContainsFunc(claims, func(v *corev1.PersistentVolumeClaim) bool { return slices.Contains(classesOf(v), name) }), err
}
