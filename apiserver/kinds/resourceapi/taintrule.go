package resourceapi

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func taintRules() resource.Kind[*resourcev1.DeviceTaintRule] {
	return resource.Kind[*resourcev1.DeviceTaintRule]{
		GroupVersionKind: resourcev1.SchemeGroupVersion.WithKind("DeviceTaintRule"),
		Plural:           "devicetaintrules",
		ClusterScoped:    true,
		New:              func() *resourcev1.DeviceTaintRule { return &resourcev1.DeviceTaintRule{} },
		NewList:          func() runtime.Object { return &resourcev1.DeviceTaintRuleList{} },
		// The time of creation is the time at which the taint is added.
		PrepareCreate: func(r *resourcev1.DeviceTaintRule) { rule.DefaultPointer(&r.Spec.Taint.TimeAdded, r.CreationTimestamp) },
		PrepareUpdate: prepareTaintRuleUpdate,
		StatusResets:  []string{"metadata", "spec"},
		PrepareStatus: func(r, old *resourcev1.DeviceTaintRule) { metav1.ResetObjectMetaForStatus(r, old) },
		Validate: func(r *resourcev1.DeviceTaintRule) field.ErrorList {
			return validateTaintRule(r, &resourcev1.DeviceTaintRule{})
		},
		ValidateUpdate:         validateTaintRule,
		ValidateStatus:         validateTaintRuleStatus,
		Spec:                   func(r *resourcev1.DeviceTaintRule) any { return &r.Spec },
		Status:                 func(r *resourcev1.DeviceTaintRule) any { return &r.Status },
		Generation:             true,
		RequireResourceVersion: true,
		Columns:                taintRuleColumns(),
	}
}

// prepareTaintRuleUpdate: a taint that a client sends without its time is the stored one.
func prepareTaintRuleUpdate(r, old *resourcev1.DeviceTaintRule) {
	if r.Spec.Taint.TimeAdded == nil {
		r.Spec.Taint.TimeAdded = old.Spec.Taint.TimeAdded
	}
}

func taintRuleColumns() []resource.Column[*resourcev1.DeviceTaintRule] {
	doc := resourcev1.DeviceTaint{}.SwaggerDoc()
	return []resource.Column[*resourcev1.DeviceTaintRule]{
		column.Name[*resourcev1.DeviceTaintRule](),
		column.Text("Key", doc["key"], 0, func(r *resourcev1.DeviceTaintRule) string { return r.Spec.Taint.Key }),
		column.Text("Value", doc["value"], 0, func(r *resourcev1.DeviceTaintRule) string { return r.Spec.Taint.Value }),
		column.Text("Effect", doc["effect"], 0, func(r *resourcev1.DeviceTaintRule) string { return string(r.Spec.Taint.Effect) }),
		{
			Name: "TimeAdded", Type: "string", Description: doc["timeAdded"],
			Cell: func(r *resourcev1.DeviceTaintRule, now time.Time) any {
				if added := r.Spec.Taint.TimeAdded; added != nil {
					return column.Since(added.Time, now)
				}
				return column.Unknown
			},
		},
		column.Age[*resourcev1.DeviceTaintRule](),
	}
}

func validateTaintRule(r, old *resourcev1.DeviceTaintRule) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if selector, at := r.Spec.DeviceSelector, path.Child("deviceSelector"); selector != nil {
		if selector.Driver != nil {
			errs = append(errs, validateDriver(*selector.Driver, at.Child("driver"))...)
		}
		if selector.Pool != nil {
			errs = append(errs, validatePool(*selector.Pool, at.Child("pool"))...)
		}
		if selector.Device != nil {
			errs = append(errs, rule.Label(*selector.Device, at.Child("device"))...)
		}
	}
	kept := r.Spec.Taint.Effect != "" && r.Spec.Taint.Effect == old.Spec.Taint.Effect
	return append(errs, validateTaint(&r.Spec.Taint, kept, path.Child("taint"))...)
}

func validateTaintRuleStatus(r, _ *resourcev1.DeviceTaintRule) field.ErrorList {
	path := field.NewPath("status", "conditions")
	errs := metav1validation.ValidateConditions(r.Status.Conditions, path)
	if n := len(r.Status.Conditions); n > resourcev1.DeviceTaintRuleStatusMaxConditions {
		errs = append(errs, field.TooMany(path, n, resourcev1.DeviceTaintRuleStatusMaxConditions))
	}
	return errs
}
