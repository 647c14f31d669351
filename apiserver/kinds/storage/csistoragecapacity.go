package storage

import (
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func csiStorageCapacities() resource.Kind[*storagev1.CSIStorageCapacity] {
	return resource.Kind[*storagev1.CSIStorageCapacity]{
		GroupVersionKind:       storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"),
		Plural:                 "csistoragecapacities",
		New:                    func() *storagev1.CSIStorageCapacity { return &storagev1.CSIStorageCapacity{} },
		NewList:                func() runtime.Object { return &storagev1.CSIStorageCapacityList{} },
		Validate:               func(capacity *storagev1.CSIStorageCapacity) field.ErrorList { return validateCapacity(capacity, false) },
		ValidateUpdate:         validateCapacityUpdate,
		Warnings:               capacityWarnings,
		RequireResourceVersion: true,
		// Upstream's columns have the class and the capacity, but the kind is served with
		// the default ones.
		Columns: []resource.Column[*storagev1.CSIStorageCapacity]{
			column.Name[*storagev1.CSIStorageCapacity](),
			column.Created[*storagev1.CSIStorageCapacity](),
		},
	}
}

func capacityWarnings(capacity *storagev1.CSIStorageCapacity) []string {
	if capacity.NodeTopology == nil {
		return nil
	}
	var warnings []string
	path := field.NewPath("nodeTopology")
	for i, expression := range capacity.NodeTopology.MatchExpressions {
		if msg, deprecated := podwarnings.DeprecatedNodeLabel(expression.Key); deprecated {
			warnings = append(
				warnings,
				fmt.Sprintf("%s: %s is %s", path.Child("matchExpressions").Index(i).Child("key"), expression.Key, msg),
			)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(capacity.NodeTopology.MatchLabels)) {
		if msg, deprecated := podwarnings.DeprecatedNodeLabel(label); deprecated {
			warnings = append(warnings, fmt.Sprintf("%s: %s", path.Child("matchLabels").Child(label), msg))
		}
	}
	return warnings
}

func validateCapacity(capacity *storagev1.CSIStorageCapacity, badLabels bool) field.ErrorList {
	errs := validateTopologyLabels(capacity.NodeTopology, badLabels, field.NewPath("nodeTopology"))
	errs = append(errs, rule.Subdomain(capacity.StorageClassName, field.NewPath("storageClassName"))...)
	if quantity := capacity.Capacity; quantity != nil && quantity.Sign() < 0 {
		errs = append(errs, field.Invalid(field.NewPath("capacity"), quantity.String(), validation.IsNegativeErrorMsg))
	}
	return errs
}

func validateTopologyLabels(topology *metav1.LabelSelector, badLabels bool, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(
		topology,
		metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: badLabels},
		path,
	)
}

// validateCapacityUpdate: the object is the answer to one question, which stays.
func validateCapacityUpdate(capacity, old *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := validateCapacity(capacity, len(validateTopologyLabels(old.NodeTopology, false, nil)) > 0)
	errs = append(errs, validation.ValidateImmutableField(capacity.NodeTopology, old.NodeTopology, field.NewPath("nodeTopology"))...)
	return append(
		errs,
		validation.ValidateImmutableField(capacity.StorageClassName, old.StorageClassName, field.NewPath("storageClassName"))...)
}
