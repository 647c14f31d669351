package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

var resourceHealths = []corev1.ResourceHealthStatus{
	corev1.ResourceHealthStatusHealthy,
	corev1.ResourceHealthStatusUnhealthy,
	corev1.ResourceHealthStatusUnknown,
}

// claimedResource begins the name of a resource that is a device of a claim.
const claimedResource = "claim:"

// validateAllocated judges what nodes report of the resources that containers hold: each
// is one that the container asks for. A container that the spec does not have is passed over.
func validateAllocated(
	statuses []corev1.ContainerStatus,
	containers []corev1.Container,
	extended *corev1.PodExtendedResourceClaimStatus,
	path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	for i := range statuses {
		named := func(c corev1.Container) bool { return c.Name == statuses[i].Name }
		at, container := path.Index(i).Child("allocatedResourcesStatus"), slices.IndexFunc(containers, named)
		for j, allocated := range statuses[i].AllocatedResourcesStatus {
			if container >= 0 {
				errs = append(errs, validateAllocatedName(allocated.Name, &containers[container], extended, at.Index(j).Child("name"))...)
			}
			errs = append(errs, validateHealths(allocated.Resources, at.Index(j).Child("resources"))...)
		}
	}
	return errs
}

func validateAllocatedName(
	name corev1.ResourceName,
	c *corev1.Container,
	extended *corev1.PodExtendedResourceClaimStatus,
	path *field.Path,
) field.ErrorList {
	claimed, isClaim := strings.CutPrefix(string(name), claimedResource)
	if !isClaim {
		if _, requested := c.Resources.Requests[name]; !requested {
			return field.ErrorList{field.Invalid(path, name, "must match one of the container's resource requests")}
		}
		return nil
	}
	claim, request, _ := strings.Cut(claimed, "/")
	if slices.Contains(c.Resources.Claims, corev1.ResourceClaim{Name: claim, Request: request}) ||
		inExtendedClaim(claim, request, c, extended) {
		return nil
	}
	return field.ErrorList{field.Invalid(
		path,
		name,
		"must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
	)}
}

// inExtendedClaim: the scheduler made the claim for an extended resource of the container.
func inExtendedClaim(claim, request string, c *corev1.Container, extended *corev1.PodExtendedResourceClaimStatus) bool {
	if extended == nil || request == "" || claim != extended.ResourceClaimName {
		return false
	}
	return slices.ContainsFunc(extended.RequestMappings, func(m corev1.ContainerExtendedResourceRequest) bool {
		amount := c.Resources.Requests[corev1.ResourceName(m.ResourceName)]
		return m.ContainerName == c.Name && m.RequestName == request && !amount.IsZero()
	})
}

func validateHealths(healths []corev1.ResourceHealth, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceID]()
	for i, health := range healths {
		at := path.Index(i)
		errs = append(errs, rule.OneOf(health.Health, resourceHealths, at.Child("health"))...)
		switch message := at.Child("message"); {
		case health.Message == nil:
		case *health.Message == "":
			errs = append(errs, field.Required(message, "must be non-empty if specified"))
		case len(*health.Message) > corev1.ResourceHealthMessageMaxLength:
			errs = append(errs, field.TooLong(message, "", corev1.ResourceHealthMessageMaxLength))
		}
		if seen.Has(health.ResourceID) {
			errs = append(errs, field.Duplicate(at.Child("resourceID"), health.ResourceID))
		}
		seen.Insert(health.ResourceID)
	}
	return errs
}
