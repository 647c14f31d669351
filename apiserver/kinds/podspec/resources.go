package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"
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
		errs = append(errs, validateContainerResource(name, at)...)
		errs = append(errs, Quantity(name, r.Limits[name], at)...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		at := requests.Key(string(name))
		errs = append(errs, validateContainerResource(name, at)...)
		errs = append(errs, Quantity(name, r.Requests[name], at)...)
		errs = append(errs, validateRequest(name, r, path)...)
	}
	return errs
}

func validateRequest(name corev1.ResourceName, r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	request := r.Requests[name]
	limit, limited := r.Limits[name]
	if !limited {
		if exact(name) {
			return field.ErrorList{field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources")}
		}
		return nil
	}
	at := path.Child("requests")
	if exact(name) && request.Cmp(limit) != 0 {
		return field.ErrorList{field.Invalid(at, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))}
	}
	if request.Cmp(limit) > 0 {
		return field.ErrorList{field.Invalid(at, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))}
	}
	return nil
}

// native resources have no domain, or that of Kubernetes.
func native(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// exact resources cannot be promised twice: huge pages and devices.
func exact(name corev1.ResourceName) bool { return isHugePage(name) || !native(name) }

func validateContainerResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range utilvalidation.IsQualifiedName(string(name)) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	if len(errs) > 0 {
		return errs
	}
	switch {
	case !strings.Contains(string(name), "/"):
		if !standardForContainers(name) {
			return field.ErrorList{field.Invalid(path, name, "must be a standard resource for containers")}
		}
	case !native(name) && !extended(name):
		return field.ErrorList{field.Invalid(path, name, "doesn't follow extended resource name standard")}
	}
	return nil
}

func standardForContainers(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return isHugePage(name)
}

func extended(name corev1.ResourceName) bool {
	if native(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(utilvalidation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// Quantity judges an amount of a resource: not below 0, and whole where parts make no sense.
func Quantity(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be greater than or equal to 0"))
	}
	if (name == corev1.ResourcePods || !native(name)) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q, "must be an integer"))
	}
	return errs
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
