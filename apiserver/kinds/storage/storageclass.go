package storage

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// defaultAnnotations mark the class of claims that name none.
var defaultAnnotations = []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

// Supported values in the order of messages.
var (
	reclaimPolicies = []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain}
	bindingModes    = []storagev1.VolumeBindingMode{storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer}
)

func storageClasses() resource.Kind[*storagev1.StorageClass] {
	return resource.Kind[*storagev1.StorageClass]{
		GroupVersionKind: storagev1.SchemeGroupVersion.WithKind("StorageClass"),
		Plural:           "storageclasses",
		ReturnDeleted:    true,
		ShortNames:       []string{"sc"},
		ClusterScoped:    true,
		New:              func() *storagev1.StorageClass { return &storagev1.StorageClass{} },
		NewList:          func() runtime.Object { return &storagev1.StorageClassList{} },
		Default:          defaultStorageClass,
		Validate:         validateStorageClass,
		ValidateUpdate:   validateStorageClassUpdate,
		Warnings:         storageClassWarnings,
		Columns:          storageClassColumns(),
	}
}

func defaultStorageClass(class *storagev1.StorageClass) {
	rule.DefaultPointer(&class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	rule.DefaultPointer(&class.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func storageClassColumns() []resource.Column[*storagev1.StorageClass] {
	doc, name := storagev1.StorageClass{}.SwaggerDoc(), column.Name[*storagev1.StorageClass]()
	name.Cell = func(class *storagev1.StorageClass, _ time.Time) any {
		for _, annotation := range defaultAnnotations {
			if class.Annotations[annotation] == "true" {
				return class.Name + " (default)"
			}
		}
		return class.Name
	}
	// Upstream calls the fifth column a string though its cells are true and false.
	expansion := column.Bool(
		"AllowVolumeExpansion",
		doc["allowVolumeExpansion"],
		func(class *storagev1.StorageClass) bool { return rule.IsTrue(class.AllowVolumeExpansion) },
	)
	expansion.Type = "string"
	return []resource.Column[*storagev1.StorageClass]{
		name,
		column.Text("Provisioner", doc["provisioner"], 0, func(class *storagev1.StorageClass) string { return class.Provisioner }),
		column.Text("ReclaimPolicy", doc["reclaimPolicy"], 0, func(class *storagev1.StorageClass) string {
			return string(ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete))
		}),
		column.Text("VolumeBindingMode", doc["volumeBindingMode"], 0, func(class *storagev1.StorageClass) string {
			return string(ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate))
		}),
		expansion,
		column.Age[*storagev1.StorageClass](),
	}
}

func storageClassWarnings(class *storagev1.StorageClass) []string {
	var warnings []string
	for i, term := range class.AllowedTopologies {
		for j, expression := range term.MatchLabelExpressions {
			if msg, deprecated := podwarnings.DeprecatedNodeLabel(expression.Key); deprecated {
				path := field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key")
				warnings = append(warnings, fmt.Sprintf("%s: %s", path, msg))
			}
		}
	}
	return warnings
}

func validateStorageClass(class *storagev1.StorageClass) field.ErrorList {
	errs := validateProvisioner(class.Provisioner, field.NewPath("provisioner"))
	errs = append(errs, validateParameters(class.Parameters, field.NewPath("parameters"))...)
	if policy := class.ReclaimPolicy; policy != nil && *policy != "" {
		errs = append(errs, rule.OneOf(*policy, reclaimPolicies, field.NewPath("reclaimPolicy"))...)
	}
	if mode, path := class.VolumeBindingMode, field.NewPath("volumeBindingMode"); mode == nil {
		errs = append(errs, field.Required(path, ""))
	} else {
		errs = append(errs, rule.OneOf(*mode, bindingModes, path)...)
	}
	return append(errs, validateTopologies(class.AllowedTopologies, field.NewPath("allowedTopologies"))...)
}

func validateTopologies(terms []corev1.TopologySelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var seen []map[string]sets.Set[string]
	for i := range terms {
		expressions, bad := validateTopology(&terms[i], path.Index(i).Child("matchLabelExpressions"))
		errs = append(errs, bad...)
		for _, other := range seen {
			if equality.Semantic.DeepEqual(expressions, other) {
				errs = append(errs, field.Duplicate(path.Index(i).Child("matchLabelExpressions"), ""))
			}
		}
		seen = append(seen, expressions)
	}
	return errs
}

func validateTopology(term *corev1.TopologySelectorTerm, path *field.Path) (map[string]sets.Set[string], field.ErrorList) {
	var errs field.ErrorList
	expressions := map[string]sets.Set[string]{}
	for i, expression := range term.MatchLabelExpressions {
		at, values := path.Index(i), sets.New[string]()
		if len(expression.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"), ""))
		}
		for j, value := range expression.Values {
			if values.Has(value) {
				errs = append(errs, field.Duplicate(at.Child("values").Index(j), value))
			}
			values.Insert(value)
		}
		errs = append(errs, metav1validation.ValidateLabelName(expression.Key, at.Child("key"))...)
		if _, twice := expressions[expression.Key]; twice {
			errs = append(errs, field.Duplicate(at.Child("key"), expression.Key))
		}
		expressions[expression.Key] = values
	}
	return expressions, errs
}

// validateStorageClassUpdate: volumes were made by what the class says.
func validateStorageClassUpdate(class, old *storagev1.StorageClass) field.ErrorList {
	errs := validateStorageClass(class)
	errs = append(errs, rule.Immutable(class.Parameters, old.Parameters, field.NewPath("parameters"))...)
	errs = append(errs, rule.Immutable(class.Provisioner, old.Provisioner, field.NewPath("provisioner"))...)
	errs = append(errs, rule.Immutable(class.ReclaimPolicy, old.ReclaimPolicy, field.NewPath("reclaimPolicy"))...)
	return append(errs, rule.Immutable(class.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
}
