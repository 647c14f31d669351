package autoscaling

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Limits of the rules of how fast to scale, in seconds.
const (
	policyPeriodMax     = 1800
	stabilizationMax    = 3600
	oneSourceOnly       = "must populate the given metric source only"
	missingSource       = "must populate information for the given metric source"
	greaterThanZero     = "must be greater than zero"
	averageOrPercent    = "must set either a target raw value or a target utilization"
	notAverageAndOthers = "may not set both a target raw value and a target utilization"
)

var (
	metricTypes = []autoscalingv2.MetricSourceType{
		autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
		autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
	}
	targetTypes = []autoscalingv2.MetricTargetType{
		autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType,
	}
	policyTypes = []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy}
	selections  = []autoscalingv2.ScalingPolicySelect{
		autoscalingv2.DisabledPolicySelect,
		autoscalingv2.MaxChangePolicySelect,
		autoscalingv2.MinChangePolicySelect,
	}
)

// referenceRules says what a reference may leave out.
type referenceRules struct{ anyVersion, coreGroup bool }

func (r referenceRules) validate(ref *autoscalingv2.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	errs := validateSegment(ref.Kind, path.Child("kind"))
	errs = append(errs, validateSegment(ref.Name, path.Child("name"))...)
	if err := r.version(ref.APIVersion); err != nil {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), ref.APIVersion, err.Error()))
	}
	return errs
}

func (r referenceRules) version(apiVersion string) error {
	if r.anyVersion {
		return nil
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return err
	}
	if gv.Group == "" && !r.coreGroup {
		return fmt.Errorf("apiVersion must specify API group")
	}
	return nil
}

func validateSegment(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return rule.PathSegment(name, path)
}

// validateAutoscaler judges an autoscaler; old is nil for a new one. The
// version in a reference is not judged again while it stays the same.
func validateAutoscaler(hpa, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	spec, path := &hpa.Spec, field.NewPath("spec")
	target, described := referenceRules{}, referenceRules{coreGroup: true}
	target.coreGroup = spec.ScaleTargetRef.Kind == "ReplicationController" // the only one there that scales
	if old != nil {
		was := &old.Spec.ScaleTargetRef
		target.anyVersion = was.APIVersion == spec.ScaleTargetRef.APIVersion && was.Kind == spec.ScaleTargetRef.Kind
		described.anyVersion = slices.ContainsFunc(old.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
			return m.Object != nil && described.version(m.Object.DescribedObject.APIVersion) != nil
		})
	}
	var errs field.ErrorList
	least := ptr.Deref(spec.MinReplicas, 1)
	rule.Nonnegative(&errs, least, path.Child("minReplicas"))
	switch {
	case spec.MaxReplicas == 0:
		errs = append(errs, field.Required(path.Child("maxReplicas"), "must be set and greater than 0"))
	case spec.MaxReplicas < 0:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to 1"))
	}
	if spec.MinReplicas != nil && spec.MaxReplicas < least {
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, target.validate(&spec.ScaleTargetRef, path.Child("scaleTargetRef"))...)
	errs = append(errs, validateMetrics(spec, described, path.Child("metrics"))...)
	if spec.Behavior != nil {
		errs = append(errs, validateRules(spec.Behavior.ScaleUp, path.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateRules(spec.Behavior.ScaleDown, path.Child("behavior", "scaleDown"))...)
	}
	return errs
}

// validateMetrics: without pods, only what is measured elsewhere can wake the first.
func validateMetrics(spec *autoscalingv2.HorizontalPodAutoscalerSpec, described referenceRules, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	outside := false
	for i := range spec.Metrics {
		metric := &spec.Metrics[i]
		errs = append(errs, validateMetric(metric, described, path.Index(i))...)
		outside = outside || metric.Type == autoscalingv2.ObjectMetricSourceType || metric.Type == autoscalingv2.ExternalMetricSourceType
	}
	if ptr.Deref(spec.MinReplicas, 1) == 0 && !outside {
		errs = append(
			errs,
			field.Forbidden(path, "must specify at least one Object or External metric to support scaling to zero replicas"),
		)
	}
	return errs
}

// validateMetric asks for exactly the source that the type names.
func validateMetric(metric *autoscalingv2.MetricSpec, described referenceRules, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if metric.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric source type"))
	}
	errs = append(errs, rule.OneOf(metric.Type, metricTypes, path.Child("type"))...)
	sources := []struct {
		of       autoscalingv2.MetricSourceType
		name     string
		set      bool
		validate func(*field.Path) field.ErrorList
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", metric.Object != nil, func(at *field.Path) field.ErrorList { return validateObject(metric.Object, described, at) }},
		{autoscalingv2.ExternalMetricSourceType, "external", metric.External != nil, func(at *field.Path) field.ErrorList { return validateExternal(metric.External, at) }},
		{autoscalingv2.PodsMetricSourceType, "pods", metric.Pods != nil, func(at *field.Path) field.ErrorList { return validatePods(metric.Pods, at) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", metric.Resource != nil, func(at *field.Path) field.ErrorList { return validateResource(metric.Resource, at) }},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", metric.ContainerResource != nil, func(at *field.Path) field.ErrorList {
			return validateContainerResource(metric.ContainerResource, at)
		}},
	}
	set := 0
	for _, source := range sources {
		if source.set {
			set++
		}
	}
	judged := false // of several only the first is
	for _, source := range sources {
		at := path.Child(source.name)
		switch {
		case source.set && source.of != metric.Type && set > 1:
			errs = append(errs, field.Forbidden(at, oneSourceOnly))
		case !source.set && source.of == metric.Type:
			errs = append(errs, field.Required(at, missingSource))
		}
		if source.set && !judged {
			judged = true
			errs = append(errs, source.validate(at)...)
		}
	}
	return errs
}

func validateObject(source *autoscalingv2.ObjectMetricSource, described referenceRules, path *field.Path) field.ErrorList {
	errs := described.validate(&source.DescribedObject, path.Child("describedObject"))
	errs = append(errs, validateIdentifier(&source.Metric, path.Child("metric"))...)
	errs = append(errs, validateTarget(&source.Target, path.Child("target"))...)
	if source.Target.Value == nil && source.Target.AverageValue == nil {
		errs = append(errs, field.Required(path.Child("target", "averageValue"), "must set either a target value or averageValue"))
	}
	return errs
}

func validateExternal(source *autoscalingv2.ExternalMetricSource, path *field.Path) field.ErrorList {
	errs := validateIdentifier(&source.Metric, path.Child("metric"))
	errs = append(errs, validateTarget(&source.Target, path.Child("target"))...)
	switch value, average := source.Target.Value != nil, source.Target.AverageValue != nil; {
	case !value && !average:
		errs = append(
			errs,
			field.Required(path.Child("target", "averageValue"), "must set either a target value for metric or a per-pod target"),
		)
	case value && average:
		errs = append(
			errs,
			field.Forbidden(path.Child("target", "value"), "may not set both a target value for metric and a per-pod target"),
		)
	}
	return errs
}

func validatePods(source *autoscalingv2.PodsMetricSource, path *field.Path) field.ErrorList {
	errs := validateIdentifier(&source.Metric, path.Child("metric"))
	errs = append(errs, validateTarget(&source.Target, path.Child("target"))...)
	if source.Target.AverageValue == nil {
		errs = append(errs, field.Required(path.Child("target", "averageValue"), "must specify a positive target averageValue"))
	}
	return errs
}

func validateResource(source *autoscalingv2.ResourceMetricSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if source.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must specify a resource name"))
	}
	return append(errs, validateUtilization(&source.Target, path.Child("target"))...)
}

func validateContainerResource(source *autoscalingv2.ContainerResourceMetricSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if source.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must specify a resource name"))
	} else {
		errs = append(errs, rule.ContainerResource(source.Name, path.Child("name"))...)
	}
	if source.Container == "" {
		errs = append(errs, field.Required(path.Child("container"), "must specify a container"))
	} else {
		errs = append(errs, rule.Label(source.Container, path.Child("container"))...)
	}
	return append(errs, validateUtilization(&source.Target, path.Child("target"))...)
}

func validateUtilization(target *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	errs := validateTarget(target, path)
	switch percent, average := target.AverageUtilization != nil, target.AverageValue != nil; {
	case !percent && !average:
		errs = append(errs, field.Required(path.Child("averageUtilization"), averageOrPercent))
	case percent && average:
		errs = append(errs, field.Forbidden(path.Child("averageValue"), notAverageAndOthers))
	}
	return errs
}

func validateTarget(target *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if target.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric target type"))
	}
	if !slices.Contains(targetTypes, target.Type) {
		errs = append(errs, field.Invalid(path.Child("type"), target.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if target.Value != nil && target.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("value"), target.Value, "must be positive"))
	}
	if target.AverageValue != nil && target.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("averageValue"), target.AverageValue, "must be positive"))
	}
	if target.AverageUtilization != nil && *target.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(path.Child("averageUtilization"), target.AverageUtilization, "must be greater than 0"))
	}
	return errs
}

func validateIdentifier(metric *autoscalingv2.MetricIdentifier, path *field.Path) field.ErrorList {
	if metric.Name == "" {
		return field.ErrorList{field.Required(path.Child("name"), "must specify a metric name")}
	}
	return rule.PathSegment(metric.Name, path.Child("name"))
}

func validateRules(rules *autoscalingv2.HPAScalingRules, path *field.Path) field.ErrorList {
	if rules == nil {
		return nil
	}
	var errs field.ErrorList
	if window := rules.StabilizationWindowSeconds; window != nil {
		at := path.Child("stabilizationWindowSeconds")
		switch {
		case *window < 0:
			errs = append(errs, field.Invalid(at, window, "must be greater than or equal to zero"))
		case *window > stabilizationMax:
			errs = append(errs, field.Invalid(at, window, fmt.Sprintf("must be less than or equal to %v", stabilizationMax)))
		}
	}
	if rules.SelectPolicy != nil {
		errs = append(errs, rule.OneOf(*rules.SelectPolicy, selections, path.Child("selectPolicy"))...)
	}
	if len(rules.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "must specify at least one Policy"))
	}
	for i := range rules.Policies {
		errs = append(errs, validatePolicy(&rules.Policies[i], path.Child("policies").Index(i))...)
	}
	if tolerance := rules.Tolerance; tolerance != nil && tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), tolerance.String(), "must be greater than or equal to 0"))
	}
	return errs
}

func validatePolicy(policy *autoscalingv2.HPAScalingPolicy, path *field.Path) field.ErrorList {
	errs := rule.OneOf(policy.Type, policyTypes, path.Child("type"))
	if policy.Value <= 0 {
		errs = append(errs, field.Invalid(path.Child("value"), policy.Value, greaterThanZero))
	}
	switch at := path.Child("periodSeconds"); {
	case policy.PeriodSeconds <= 0:
		errs = append(errs, field.Invalid(at, policy.PeriodSeconds, greaterThanZero))
	case policy.PeriodSeconds > policyPeriodMax:
		errs = append(errs, field.Invalid(at, policy.PeriodSeconds, fmt.Sprintf("must be less than or equal to %v", policyPeriodMax)))
	}
	return errs
}

func validateAutoscalerStatus(hpa, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	for i, condition := range hpa.Status.Conditions {
		if generation := condition.ObservedGeneration; generation != nil {
			errs = append(
				errs,
				validation.ValidateNonnegativeField(*generation, path.Child("conditions").Index(i).Child("observedGeneration"))...)
		}
	}
	rule.Nonnegative(&errs, hpa.Status.CurrentReplicas, path.Child("currentReplicas"))
	rule.Nonnegative(&errs, hpa.Status.DesiredReplicas, path.Child("desiredReplicas"))
	return errs
}
