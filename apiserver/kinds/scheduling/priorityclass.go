package scheduling

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// userPriorityMax is the highest value of a class that is not the system's.
	userPriorityMax = 1_000_000_000
	systemPriority  = 2 * userPriorityMax
	systemPrefix    = "system-"
)

// preemptionPolicies in the order of messages.
var preemptionPolicies = []corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever}

// SystemPriorityClasses returns the classes that every cluster has; the result is the
// caller's. Nobody can change or delete them, and no other name may begin as theirs do.
func SystemPriorityClasses() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{
		{
			ObjectMeta:  metav1.ObjectMeta{Name: "system-node-critical"},
			Value:       systemPriority + 1000,
			Description: "Used for system critical pods that must not be moved from their current node.",
		},
		{
			ObjectMeta:  metav1.ObjectMeta{Name: "system-cluster-critical"},
			Value:       systemPriority,
			Description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
		},
	}
}

func priorityClasses() resource.Kind[*schedulingv1.PriorityClass] {
	return resource.Kind[*schedulingv1.PriorityClass]{
		GroupVersionKind: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		Plural:           "priorityclasses",
		ShortNames:       []string{"pc"},
		ClusterScoped:    true,
		New:              func() *schedulingv1.PriorityClass { return &schedulingv1.PriorityClass{} },
		NewList:          func() runtime.Object { return &schedulingv1.PriorityClassList{} },
		Default: func(class *schedulingv1.PriorityClass) {
			rule.DefaultPointer(&class.PreemptionPolicy, corev1.PreemptLowerPriority)
		},
		PrepareCreate:  func(class *schedulingv1.PriorityClass) { class.Generation = 1 },
		Validate:       validatePriorityClass,
		ValidateUpdate: validatePriorityClassUpdate,
		Protected:      protectPriorityClass,
		Columns:        priorityClassColumns(),
	}
}

func protectPriorityClass(class *schedulingv1.PriorityClass) string {
	for _, system := range SystemPriorityClasses() {
		if system.Name == class.Name {
			return "this is a system priority class and cannot be deleted"
		}
	}
	return ""
}

func priorityClassColumns() []resource.Column[*schedulingv1.PriorityClass] {
	doc := schedulingv1.PriorityClass{}.SwaggerDoc()
	return []resource.Column[*schedulingv1.PriorityClass]{
		column.Name[*schedulingv1.PriorityClass](),
		column.Int("Value", doc["value"], func(class *schedulingv1.PriorityClass) int64 { return int64(class.Value) }),
		column.Bool("Global-Default", doc["globalDefault"], func(class *schedulingv1.PriorityClass) bool { return class.GlobalDefault }),
		column.Age[*schedulingv1.PriorityClass](),
		column.Text("PreemptionPolicy", doc["preemptionPolicy"], 0, func(class *schedulingv1.PriorityClass) string {
			return string(ptr.Deref(class.PreemptionPolicy, ""))
		}),
	}
}

func validatePriorityClass(class *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	switch {
	case strings.HasPrefix(class.Name, systemPrefix):
		if problem := systemProblem(class); problem != "" {
			errs = append(
				errs,
				field.Forbidden(
					field.NewPath("metadata", "name"),
					"priority class names with '"+systemPrefix+"' prefix are reserved for system use only. error: "+problem,
				),
			)
		}
	case class.Value > userPriorityMax:
		errs = append(
			errs,
			field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %v", userPriorityMax)),
		)
	}
	if policy := class.PreemptionPolicy; policy != nil {
		errs = append(errs, rule.RequiredOneOf(*policy, preemptionPolicies, field.NewPath("preemptionPolicy"))...)
	}
	return errs
}

// systemProblem says what makes a class other than the system's of the same name.
func systemProblem(class *schedulingv1.PriorityClass) string {
	for _, system := range SystemPriorityClasses() {
		switch {
		case system.Name != class.Name:
			continue
		case system.Value != class.Value:
			return fmt.Sprintf("value of %v PriorityClass must be %v", system.Name, system.Value)
		case system.GlobalDefault != class.GlobalDefault:
			return fmt.Sprintf("globalDefault of %v PriorityClass must be %v", system.Name, system.GlobalDefault)
		}
		return ""
	}
	return class.Name + " is not a known system priority class"
}

// validatePriorityClassUpdate: pods carry the value that the class had when they were made.
func validatePriorityClassUpdate(class, old *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if class.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	return append(
		errs,
		validation.ValidateImmutableField(class.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
}
