package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Resources judges the requests and limits of something that is not a container but
// runs beside one, such as the overhead of a runtime.
func Resources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	return validateResources(r, rule.ContainerResource, path)
}

// validateResources: nobody can use more than the limit, and what cannot be shared
// is asked for exactly as it is limited.
func validateResources(
	r *corev1.ResourceRequirements,
	judgeName func(corev1.ResourceName, *field.Path) field.ErrorList,
	path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	limits, requests := path.Child("limits"), path.Child("requests")
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		at := limits.Key(string(name))
		errs = append(errs, judgeName(name, at)...)
		errs = append(errs, rule.Quantity(name, r.Limits[name], at)...)
		errs = append(errs, validatePages(name, r.Limits[name], at)...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		at := requests.Key(string(name))
		errs = append(errs, judgeName(name, at)...)
		errs = append(errs, rule.Quantity(name, r.Requests[name], at)...)
		errs = append(errs, validatePages(name, r.Requests[name], at)...)
		errs = append(errs, validateRequest(name, r, path)...)
	}
	return append(errs, validateHugePages(r, path)...)
}

// validateHugePages: who asks for memory in huge pages alone has none for anything else.
func validateHugePages(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	huge := false
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				return nil
			}
			huge = huge || rule.HugePage(name)
		}
	}
	if huge {
		return field.ErrorList{field.Forbidden(path, "HugePages require cpu or memory")}
	}
	return nil
}

// validatePages: huge pages are asked for in whole ones.
func validatePages(name corev1.ResourceName, amount resource.Quantity, path *field.Path) field.ErrorList {
	if !rule.HugePage(name) {
		return nil
	}
	page, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err == nil && page.Sign() > 0 && page.MilliValue()%1000 == 0 && amount.Value()%page.Value() == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, amount.String(), fmt.Sprintf("%s is not positive integer multiple of %s", amount.String(), name))}
}

// podResource judges the name of a resource that is given for a whole pod.
func podResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := rule.ResourceName(name, path)
	if len(errs) == 0 && !resourcehelper.IsSupportedPodLevelResource(name) {
		errs = append(errs, field.NotSupported(path, name, sets.List(resourcehelper.SupportedPodLevelResources())))
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
		return field.ErrorList{
			field.Invalid(at, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())),
		}
	}
	return nil
}

// validatePodResources judges resources given for the whole pod.
func validatePodResources(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	whole := spec.Resources
	if whole == nil {
		return nil
	}
	var errs field.ErrorList
	if whole.Claims != nil {
		errs = append(errs, field.Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	errs = append(errs, validateResources(whole, podResource, path)...)
	errs = append(errs, validateClaimed(whole.Claims, spec.ResourceClaims, path.Child("claims"))...)
	sum := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		request, set := whole.Requests[name]
		if total := sum[name]; set && total.Cmp(request) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", total.String())))
		}
	}
	errs = append(errs, validatePodPages(spec, path)...)
	for i := range spec.Containers {
		limits := spec.Containers[i].Resources.Limits
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			limit := limits[name]
			if most, set := whole.Limits[name]; set && limit.Cmp(most) > 0 {
				errs = append(errs, field.Invalid(path.Child("containers").Index(i).Key(string(name)).Child("limits"), limit.String(),
					fmt.Sprintf("must be less than or equal to pod limits of %s", most.String())))
			}
		}
	}
	return errs
}

// validatePodPages: containers can have no more huge pages together than their pod.
func validatePodPages(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	sum := resourcehelper.AggregateContainerLimits(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		total := sum[name]
		if limit, set := spec.Resources.Limits[name]; rule.HugePage(name) && set && total.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("limits").Key(string(name)), limit.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", total.String())))
		}
	}
	return errs
}
