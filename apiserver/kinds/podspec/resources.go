package podspec

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Resources judges the requests and limits of something that is not a container but
// runs beside one, such as the overhead of a runtime.
func Resources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	return validateResources(r, path)
}

// validateResources: nobody can use more than the limit, and what cannot be shared
// is asked for exactly as it is limited.
func validateResources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	limits, requests := path.Child("limits"), path.Child("requests")
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		at := limits.Key(string(name))
		errs = append(errs, rule.ContainerResource(name, at)...)
		errs = append(errs, rule.Quantity(name, r.Limits[name], at)...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		at := requests.Key(string(name))
		errs = append(errs, rule.ContainerResource(name, at)...)
		errs = append(errs, rule.Quantity(name, r.Requests[name], at)...)
		errs = append(errs, validateRequest(name, r, path)...)
	}
	return errs
}

func validateRequest(name corev1.ResourceName, r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	request := r.Requests[name]
	limit, limited := r.Limits[name]
	if !limited {
		if !rule.Overcommittable(name) {
			return field.ErrorList{field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources")}
		}
		return nil
	}
	at := path.Child("requests")
	if !rule.Overcommittable(name) && request.Cmp(limit) != 0 {
		return field.ErrorList{field.Invalid(at, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))}
	}
	if request.Cmp(limit) > 0 {
		return field.ErrorList{field.Invalid(at, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))}
	}
	return nil
}

// validatePodResources judges resources given for the whole pod.
func validatePodResources(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	whole := spec.Resources
	if whole == nil {
		return nil
	}
	errs := validateResources(whole, path)
	for _, list := range []struct {
		path      *field.Path
		resources corev1.ResourceList
	}{{path.Child("limits"), whole.Limits}, {path.Child("requests"), whole.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.resources)) {
			if !resourcehelper.IsSupportedPodLevelResource(name) {
				errs = append(errs, field.NotSupported(list.path, name, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
			}
		}
	}
	sum := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		request, set := whole.Requests[name]
		if total := sum[name]; set && total.Cmp(request) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", total.String())))
		}
	}
	return errs
}
