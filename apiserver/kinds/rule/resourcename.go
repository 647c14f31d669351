package rule

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names of resources without a domain: what containers can have, and what a quota
// can limit beyond that.
var (
	containerResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	countedResources   = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
	}
	quotaResources = append([]corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
	}, countedResources...)
)

// NativeResource reports that a resource has no domain, or that of Kubernetes.
func NativeResource(name corev1.ResourceName) bool {
	return unqualified(name) || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func unqualified(name corev1.ResourceName) bool { return !strings.Contains(string(name), "/") }

// HugePage reports that a resource is memory in huge pages of one size.
func HugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Overcommittable reports that a resource can be promised twice, other than huge
// pages and devices.
func Overcommittable(name corev1.ResourceName) bool { return NativeResource(name) && !HugePage(name) }

// ExtendedResource reports that a resource is a device, of a domain that is not Kubernetes'.
func ExtendedResource(name corev1.ResourceName) bool {
	if NativeResource(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(utilvalidation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// QuotaResource reports that a resource without a domain can be limited by a quota.
func QuotaResource(name corev1.ResourceName) bool {
	return slices.Contains(quotaResources, name) || HugePage(name) ||
		strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// ResourceName judges the name of any resource that Kubernetes speaks of.
func ResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, Invalid(name, utilvalidation.IsQualifiedName(string(name)), path)...)
	if len(errs) == 0 && unqualified(name) && name != corev1.ResourceStorage && !QuotaResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}

// ContainerResource judges the name of a resource that a container asks for.
func ContainerResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ResourceName(name, path)
	switch {
	case unqualified(name):
		if !slices.Contains(containerResources, name) && !HugePage(name) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
		}
	case !NativeResource(name) && !ExtendedResource(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// QuotaResourceName judges the name of a resource that a quota limits.
func QuotaResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := ResourceName(name, path)
	if unqualified(name) && !QuotaResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for quota"))
	}
	return errs
}

// Quantity judges an amount of a resource: not below 0, and whole where parts make no sense.
func Quantity(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be greater than or equal to 0"))
	}
	if (slices.Contains(countedResources, name) || ExtendedResource(name)) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q, "must be an integer"))
	}
	return errs
}
