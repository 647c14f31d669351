package resource

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// standardFinalizers need no domain.
var standardFinalizers = []string{"kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}

// looseFinalizers are kinds whose finalizers upstream takes without a domain.
var looseFinalizers = []schema.GroupResource{
	{Resource: "events"},
	{Group: "coordination.k8s.io", Resource: "leases"},
	{Group: "node.k8s.io", Resource: "runtimeclasses"},
	{Group: "policy", Resource: "poddisruptionbudgets"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
}

// ValidateFinalizers refuses finalizers that have no domain and are not standard, unless
// old had them. Custom resources may have any.
func (k *Kind[T]) ValidateFinalizers(obj, old metav1.Object) field.ErrorList {
	if k.Schema != nil || k.GroupVersionKind.Group == "admissionregistration.k8s.io" ||
		slices.Contains(looseFinalizers, k.GroupResource()) {
		return nil
	}
	var errs field.ErrorList
	for i, name := range obj.GetFinalizers() {
		known := slices.Contains(standardFinalizers, name) || old != nil && slices.Contains(old.GetFinalizers(), name)
		if !known && !strings.Contains(name, "/") {
			path := field.NewPath("metadata", "finalizers").Index(i)
			errs = append(errs, field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}
