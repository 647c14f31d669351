package apps

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func daemonSets() resource.Kind[*appsv1.DaemonSet] {
	return resource.Kind[*appsv1.DaemonSet]{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		Plural:           "daemonsets",
		ShortNames:       []string{"ds"},
		Categories:       []string{"all"},
		New:              func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} },
		NewList:          func() runtime.Object { return &appsv1.DaemonSetList{} },
		Default:          defaultDaemonSet,
		PrepareCreate:    func(ds *appsv1.DaemonSet) { setTemplateGeneration(ds, max(templateGeneration(ds), 1)) },
		PrepareUpdate:    prepareDaemonSetUpdate,
		PrepareStatus:    func(ds, old *appsv1.DaemonSet) { setTemplateGeneration(ds, templateGeneration(old)) },
		Validate:         func(ds *appsv1.DaemonSet) field.ErrorList { return validateDaemonSet(ds, nil) },
		ValidateUpdate:   validateDaemonSetUpdate,
		ValidateStatus:   validateDaemonSetStatus,
		ChangeWarnings:   daemonSetWarnings,
		Spec:             func(ds *appsv1.DaemonSet) any { return &ds.Spec },
		Status:           func(ds *appsv1.DaemonSet) any { return &ds.Status },
		Generation:       true,
		Bookmark:         func(ds *appsv1.DaemonSet) { setTemplateGeneration(ds, 0) },
		Columns:          daemonSetColumns(),
	}
}

func defaultDaemonSet(ds *appsv1.DaemonSet) {
	strategy := &ds.Spec.UpdateStrategy
	rule.Default(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		rule.DefaultPointer(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		rule.DefaultPointer(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		rule.DefaultPointer(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	rule.DefaultPointer(&ds.Spec.RevisionHistoryLimit, defaultHistoryLimit)
	podspec.Default(&ds.Spec.Template.Spec)
	// As upstream, whose apps/v1 always has the annotation: whoever writes a set owns it.
	if templateGeneration(ds) == 0 {
		setTemplateGeneration(ds, 0)
	}
}

// daemonSetWarnings are told when the template changes.
func daemonSetWarnings(ds, old *appsv1.DaemonSet) []string {
	if old != nil && templateGeneration(ds) == templateGeneration(old) {
		return nil
	}
	return podwarnings.Template(&ds.Spec.Template, field.NewPath("spec", "template"))
}

// templateGeneration counts changes of the template, in an annotation since apps/v1
// has no field for it. A client may choose where a new set begins, but not change it.
func templateGeneration(ds *appsv1.DaemonSet) int64 {
	generation, err := strconv.ParseInt(ds.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

func setTemplateGeneration(ds *appsv1.DaemonSet, generation int64) {
	metav1.SetMetaDataAnnotation(&ds.ObjectMeta, appsv1.DeprecatedTemplateGeneration, strconv.FormatInt(generation, 10))
}

func prepareDaemonSetUpdate(ds, old *appsv1.DaemonSet) {
	generation := templateGeneration(old)
	if !equality.Semantic.DeepEqual(ds.Spec.Template, old.Spec.Template) {
		generation++
	}
	setTemplateGeneration(ds, generation)
}

func daemonSetColumns() []resource.Column[*appsv1.DaemonSet] {
	status := appsv1.DaemonSetStatus{}.SwaggerDoc()
	count := func(name, key string, cell func(*appsv1.DaemonSetStatus) int32) resource.Column[*appsv1.DaemonSet] {
		return column.Int(name, status[key], func(ds *appsv1.DaemonSet) int64 { return int64(cell(&ds.Status)) })
	}
	template := workload.Columns(func(ds *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &ds.Spec.Template })
	return slices.Concat([]resource.Column[*appsv1.DaemonSet]{
		column.Name[*appsv1.DaemonSet](),
		count("Desired", "desiredNumberScheduled", func(s *appsv1.DaemonSetStatus) int32 { return s.DesiredNumberScheduled }),
		count("Current", "currentNumberScheduled", func(s *appsv1.DaemonSetStatus) int32 { return s.CurrentNumberScheduled }),
		count("Ready", "numberReady", func(s *appsv1.DaemonSetStatus) int32 { return s.NumberReady }),
		count("Up-to-date", "updatedNumberScheduled", func(s *appsv1.DaemonSetStatus) int32 { return s.UpdatedNumberScheduled }),
		count("Available", "numberAvailable", func(s *appsv1.DaemonSetStatus) int32 { return s.NumberAvailable }),
		column.Text("Node Selector", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"], 0, func(ds *appsv1.DaemonSet) string {
			return labels.FormatLabels(ds.Spec.Template.Spec.NodeSelector)
		}),
		column.Age[*appsv1.DaemonSet](),
	}, template, []resource.Column[*appsv1.DaemonSet]{
		column.Text("Selector", appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"], 1, func(ds *appsv1.DaemonSet) string {
			return workload.SelectorCell(ds.Spec.Selector)
		}),
	})
}

// validateDaemonSet judges a set; a label value in its selector that is wrong in old
// too may stay.
func validateDaemonSet(ds, old *appsv1.DaemonSet) field.ErrorList {
	spec, path := &ds.Spec, field.NewPath("spec")
	options := metav1validation.LabelSelectorValidationOptions{
		AllowInvalidLabelValueInSelector: old != nil && metav1validation.LabelSelectorHasInvalidLabelValue(old.Spec.Selector),
	}
	selector := path.Child("selector")
	errs := metav1validation.ValidateLabelSelector(spec.Selector, options, selector)
	if spec.Selector != nil && len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(selector, spec.Selector, "empty selector is invalid for daemonset"))
	}
	template := path.Child("template")
	if matcher, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil && !matcher.Matches(labels.Set(spec.Template.Labels)) {
		errs = append(
			errs,
			field.Invalid(template.Child("metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"),
		)
	}
	errs = append(errs, workload.ValidatePodTemplate(&spec.Template, template)...)
	errs = append(errs, workload.ValidateEndless(&spec.Template, "DaemonSet", template)...)
	rule.Nonnegative(&errs, spec.MinReadySeconds, path.Child("minReadySeconds"))
	errs = append(errs, validation.ValidateNonnegativeField(templateGeneration(ds), path.Child("templateGeneration"))...)
	errs = append(errs, validateDaemonSetStrategy(&spec.UpdateStrategy, path.Child("updateStrategy"))...)
	rule.NonnegativePointer(&errs, spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))
	return errs
}

func validateDaemonSetStrategy(strategy *appsv1.DaemonSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch strategy.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
		if strategy.RollingUpdate == nil {
			return field.ErrorList{field.Required(path.Child("rollingUpdate"), "")}
		}
		return validateDaemonSetRolling(strategy.RollingUpdate, path.Child("rollingUpdate"))
	}
	return field.ErrorList{field.NotSupported(path, strategy, []string{
		string(appsv1.RollingUpdateDaemonSetStrategyType), string(appsv1.OnDeleteDaemonSetStrategyType),
	})}
}

// validateDaemonSetRolling: a node either runs two pods for a while or none.
func validateDaemonSetRolling(rolling *appsv1.RollingUpdateDaemonSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	unavailable, surge := ptr.Deref(rolling.MaxUnavailable, intstr.IntOrString{}), ptr.Deref(rolling.MaxSurge, intstr.IntOrString{})
	for _, value := range []struct {
		name   string
		amount intstr.IntOrString
	}{{"maxUnavailable", unavailable}, {"maxSurge", surge}} {
		errs = append(errs, workload.ValidateIntOrPercent(value.amount, path.Child(value.name))...)
		errs = append(errs, workload.ValidatePercentMax(value.amount, path.Child(value.name))...)
	}
	switch some, more := workload.Amount(unavailable) != 0, workload.Amount(surge) != 0; {
	case some && more:
		errs = append(errs, field.Invalid(path.Child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
	case !some && !more:
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

func validateDaemonSetUpdate(ds, old *appsv1.DaemonSet) field.ErrorList {
	errs := validation.ValidateImmutableField(ds.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
	return append(errs, validateDaemonSet(ds, old)...)
}

func validateDaemonSetStatus(ds, old *appsv1.DaemonSet) field.ErrorList {
	var errs field.ErrorList
	status, path := &ds.Status, field.NewPath("status")
	rule.Nonnegative(&errs, status.CurrentNumberScheduled, path.Child("currentNumberScheduled"))
	rule.Nonnegative(&errs, status.NumberMisscheduled, path.Child("numberMisscheduled"))
	rule.Nonnegative(&errs, status.DesiredNumberScheduled, path.Child("desiredNumberScheduled"))
	rule.Nonnegative(&errs, status.NumberReady, path.Child("numberReady"))
	errs = append(errs, validation.ValidateNonnegativeField(status.ObservedGeneration, path.Child("observedGeneration"))...)
	rule.Nonnegative(&errs, status.UpdatedNumberScheduled, path.Child("updatedNumberScheduled"))
	rule.Nonnegative(&errs, status.NumberAvailable, path.Child("numberAvailable"))
	rule.Nonnegative(&errs, status.NumberUnavailable, path.Child("numberUnavailable"))
	return append(errs, workload.ValidateCollisionCount(status.CollisionCount, old.Status.CollisionCount, path.Child("collisionCount"))...)
}
