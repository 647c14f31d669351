package resourceclaim

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// stateOf is what a claim is counted by.
func stateOf(claim *resourcev1.ResourceClaim) numbers.ClaimState {
	state := numbers.ClaimState{Allocated: claim.Status.Allocation != nil, Admin: admin(claim)}
	switch {
	case claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true":
		state.Source = "extended_resource"
	case claim.Annotations[resourcev1.PodResourceClaimAnnotation] != "":
		state.Source = "resource_claim_template"
	}
	return state
}

// admin reports whether a claim asks for admin access; alternatives of a request cannot.
func admin(claim *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess
	})
}

// states counts the claims in the cache.
func (c *controller) states() map[numbers.ClaimState]int {
	states := map[numbers.ClaimState]int{}
	list, err := c.claims.List("", labels.Everything())
	if err != nil {
		return nil
	}
	for _, claim := range list {
		states[stateOf(claim)]++
	}
	return states
}

// counted counts the creation of a pod's claim.
func (c *controller) counted(claim *resourcev1.ResourceClaim, err error) {
	how := numbers.ClaimCreation{Status: "success", Admin: admin(claim), OwnerKind: "Pod"}
	if err != nil {
		how.Status = "failure"
	}
	c.env.Numbers.OfDevices().Created(how)
}
