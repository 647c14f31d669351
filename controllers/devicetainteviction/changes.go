package devicetainteviction

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// byPool files slices under their pool, and claims under the pools of their devices.
var byPool = reconcile.Index{Name: "setpoint/device-pool", Keys: func(o metav1.Object) []string {
	switch o := o.(type) {
	case *resourcev1.ResourceSlice:
		return []string{poolKey(o.Spec.Driver, o.Spec.Pool.Name)}
	case *resourcev1.ResourceClaim:
		var keys []string
		for _, result := range resultsOf(o) {
			keys = append(keys, poolKey(result.Driver, result.Pool))
		}
		return keys
	}
	return nil
}}

// poolKey joins what names a pool. A driver's name has no space.
func poolKey(driver, pool string) string { return driver + " " + pool }

// resultsOf are the devices of a claim.
func resultsOf(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if claim == nil || claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}

// podChanged is the work for a pod that appears, is bound, gets its claims, begins to end or goes.
func (c *controller) podChanged(before, after metav1.Object) []work {
	was, _ := before.(*corev1.Pod)
	is, _ := after.(*corev1.Pod)
	if is == nil {
		is, was = was, nil
	}
	if is == nil || !mayUseClaims(is) && (was == nil || !mayUseClaims(was)) {
		return nil
	}
	if was != nil && was.UID == is.UID && was.Spec.NodeName == is.Spec.NodeName &&
		(was.DeletionTimestamp == nil) == (is.DeletionTimestamp == nil) &&
		resourceclaim.PodStatusEqual(was.Status.ResourceClaimStatuses, is.Status.ResourceClaimStatuses) &&
		resourceclaim.PodExtendedStatusEqual(was.Status.ExtendedResourceClaimStatus, is.Status.ExtendedResourceClaimStatus) {
		return nil
	}
	keys := []work{{podWork, reconcile.KeyOf(is)}}
	for name := range resourceclaim.PodClaims(is) {
		if claim, err := c.claims.Get(reconcile.Key{Namespace: is.Namespace, Name: name}); err == nil {
			keys = append(keys, c.rulesOf(claim)...)
		}
	}
	return keys
}

// mayUseClaims is true of a pod with entries for claims, or with a claim that was made for its extended resources.
func mayUseClaims(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// claimChanged is the work for the pods that used a claim or use it now.
func (c *controller) claimChanged(before, after metav1.Object) []work {
	var keys []work
	for _, o := range []metav1.Object{before, after} {
		claim, _ := o.(*resourcev1.ResourceClaim)
		if len(resultsOf(claim)) > 0 {
			keys = append(append(keys, podsOf(claim)...), c.rulesOf(claim)...)
		}
	}
	return keys
}

// sliceChanged is the work for the pods with devices of a pool, if its taints may have changed.
func (c *controller) sliceChanged(before, after metav1.Object) []work {
	was, _ := before.(*resourcev1.ResourceSlice)
	is, _ := after.(*resourcev1.ResourceSlice)
	if was != nil && is != nil && apiequality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return nil
	}
	pools := map[string]bool{}
	for _, slice := range []*resourcev1.ResourceSlice{was, is} {
		if slice != nil {
			pools[poolKey(slice.Spec.Driver, slice.Spec.Pool.Name)] = true
		}
	}
	var keys []work
	for pool := range pools {
		using, err := c.claims.ByIndex(byPool, pool)
		if err != nil {
			c.env.Logger.Error("looking up claims failed", "err", err) // the index is declared, so it is there
		}
		for _, claim := range using {
			keys = append(keys, podsOf(claim)...)
		}
	}
	return keys
}

// ruleChanged is the work for a rule with another spec, and for the pods whose devices it selects or selected.
func (c *controller) ruleChanged(before, after metav1.Object) []work {
	was, _ := before.(*resourcev1.DeviceTaintRule)
	is, _ := after.(*resourcev1.DeviceTaintRule)
	if was != nil && is != nil && was.UID == is.UID && apiequality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return nil
	}
	if is == nil && was != nil {
		c.forget(was.UID)
	}
	var keys []work
	if is != nil {
		keys = append(keys, work{ruleWork, reconcile.KeyOf(is)})
	}
	for _, rule := range []*resourcev1.DeviceTaintRule{was, is} {
		if rule == nil || !evicts(rule) {
			continue
		}
		for _, claim := range c.selectedBy(rule) {
			keys = append(keys, podsOf(claim)...)
		}
	}
	return keys
}

// selectedBy are the claims with devices that a rule selects.
func (c *controller) selectedBy(rule *resourcev1.DeviceTaintRule) []*resourcev1.ResourceClaim {
	all, err := c.claims.List("", labels.Everything())
	if err != nil {
		c.env.Logger.Error("listing claims failed", "err", err)
	}
	var selected []*resourcev1.ResourceClaim
	for _, claim := range all {
		if countSelected(rule, claim) > 0 {
			selected = append(selected, claim)
		}
	}
	return selected
}

// countSelected is how many devices of a claim a rule selects.
func countSelected(rule *resourcev1.DeviceTaintRule, claim *resourcev1.ResourceClaim) (n int) {
	for _, result := range resultsOf(claim) {
		if selects(rule, result.Driver, result.Pool, result.Device) {
			n++
		}
	}
	return n
}

// rulesOf is the work for the rules that evict the users of a claim: their status counts them.
func (c *controller) rulesOf(claim *resourcev1.ResourceClaim) []work {
	all, err := c.rules.List("", labels.Everything())
	if err != nil {
		c.env.Logger.Error("listing rules failed", "err", err)
	}
	var keys []work
	for _, rule := range all {
		if evicts(rule) && countSelected(rule, claim) > 0 {
			keys = append(keys, work{ruleWork, reconcile.KeyOf(rule)})
		}
	}
	return keys
}

// podsOf is the work for the pods that a claim is reserved for.
func podsOf(claim *resourcev1.ResourceClaim) []work {
	var keys []work
	for _, user := range claim.Status.ReservedFor {
		if user.APIGroup == "" && user.Resource == "pods" {
			keys = append(keys, work{podWork, reconcile.Key{Namespace: claim.Namespace, Name: user.Name}})
		}
	}
	return keys
}

// view reads what taints devices now.
func (c *controller) view() (view, error) {
	all, err := c.rules.List("", labels.Everything())
	if err != nil {
		return view{}, err
	}
	v := view{pool: func(driver, pool string) []*resourcev1.ResourceSlice {
		found, err := c.slices.ByIndex(byPool, poolKey(driver, pool))
		if err != nil {
			c.env.Logger.Error("looking up slices failed", "err", err) // the index is declared, so it is there
		}
		return found
	}}
	for _, rule := range all {
		if evicts(rule) {
			v.rules = append(v.rules, rule)
		}
	}
	return v, nil
}

// claimIn looks claims of a namespace up; nil for one that is not there.
func (c *controller) claimIn(namespace string) func(name string) *resourcev1.ResourceClaim {
	return func(name string) *resourcev1.ResourceClaim {
		claim, err := c.claims.Get(reconcile.Key{Namespace: namespace, Name: name})
		if err != nil {
			if !apierrors.IsNotFound(err) {
				c.env.Logger.Error("looking up a claim failed", "err", err)
			}
			return nil
		}
		return claim
	}
}
