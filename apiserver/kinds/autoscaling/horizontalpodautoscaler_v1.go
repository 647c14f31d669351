package autoscaling

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Annotations in which v1 keeps what it has no fields for.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	statusesAnnotation   = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
)

// autoscalersV1 is autoscaling/v1: the same objects with a target for CPUs only.
func autoscalersV1() resource.Kind[*autoscalingv1.HorizontalPodAutoscaler] {
	return resource.Kind[*autoscalingv1.HorizontalPodAutoscaler]{
		GroupVersionKind: autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		Plural:           "horizontalpodautoscalers",
		ShortNames:       []string{"hpa"},
		Categories:       []string{"all"},
		New:              func() *autoscalingv1.HorizontalPodAutoscaler { return &autoscalingv1.HorizontalPodAutoscaler{} },
		NewList:          func() runtime.Object { return &autoscalingv1.HorizontalPodAutoscalerList{} },
		Default:          defaultV1,
		Validate: func(hpa *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
			return validateAutoscaler(newer(hpa), nil)
		},
		ValidateUpdate: func(hpa, old *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
			return validateAutoscaler(newer(hpa), newer(old))
		},
		ValidateStatus: func(hpa, old *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
			return validateAutoscalerStatus(newer(hpa), newer(old))
		},
		PrepareUpdate: prepareUpdateV1,
		PrepareStatus: prepareStatusV1,
		Spec:          func(hpa *autoscalingv1.HorizontalPodAutoscaler) any { return &hpa.Spec },
		Status:        func(hpa *autoscalingv1.HorizontalPodAutoscaler) any { return &hpa.Status },
		Generation:    true,
		Columns:       autoscalerColumns(newer),
		StoredAs:      schema.GroupResource{Group: autoscalingv2.GroupName, Resource: "horizontalpodautoscalers"},
		ToStored:      func(hpa *autoscalingv1.HorizontalPodAutoscaler) resource.Object { return newer(hpa) },
		FromStored: func(stored resource.Object) *autoscalingv1.HorizontalPodAutoscaler {
			return older(stored.(*autoscalingv2.HorizontalPodAutoscaler))
		},
	}
}

// defaultV1: who names no metric at all means the CPUs.
func defaultV1(hpa *autoscalingv1.HorizontalPodAutoscaler) {
	rule.DefaultPointer(&hpa.Spec.MinReplicas, 1)
	var others []autoscalingv1.MetricSpec
	if !read(hpa, metricsAnnotation, &others) || len(others) == 0 {
		rule.DefaultPointer(&hpa.Spec.TargetCPUUtilizationPercentage, defaultUtilization)
	}
}

// prepareUpdateV1 keeps the part of the status that stands in annotations, and
// counts a change of the part of the spec that does.
func prepareUpdateV1(hpa, old *autoscalingv1.HorizontalPodAutoscaler) {
	carryAnnotations(hpa, old, statusesAnnotation, conditionsAnnotation)
	for _, key := range []string{metricsAnnotation, behaviorAnnotation} {
		if hpa.Annotations[key] != old.Annotations[key] {
			hpa.Generation = old.Generation + 1
		}
	}
}

// prepareStatusV1 keeps the part of the spec that stands in annotations.
func prepareStatusV1(hpa, old *autoscalingv1.HorizontalPodAutoscaler) {
	carryAnnotations(hpa, old, metricsAnnotation, behaviorAnnotation)
}

func carryAnnotations(hpa, old *autoscalingv1.HorizontalPodAutoscaler, keys ...string) {
	for _, key := range keys {
		value, had := old.Annotations[key]
		switch {
		case !had:
			delete(hpa.Annotations, key)
		case hpa.Annotations == nil:
			hpa.Annotations = map[string]string{key: value}
		default:
			hpa.Annotations[key] = value
		}
	}
}

// newer is the autoscaler in version 2. An annotation that cannot be read counts for
// nothing, as upstream has it.
func newer(hpa *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	hpa = hpa.DeepCopy()
	out := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: hpa.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(hpa.Spec.ScaleTargetRef),
			MinReplicas:    hpa.Spec.MinReplicas, MaxReplicas: hpa.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: hpa.Status.ObservedGeneration, LastScaleTime: hpa.Status.LastScaleTime,
			CurrentReplicas: hpa.Status.CurrentReplicas, DesiredReplicas: hpa.Status.DesiredReplicas,
		},
	}
	out.Spec.Metrics = newerMetrics(hpa)
	out.Status.CurrentMetrics = newerStatuses(hpa)
	var behavior autoscalingv2.HorizontalPodAutoscalerBehavior
	if read(hpa, behaviorAnnotation, &behavior) && behavior != (autoscalingv2.HorizontalPodAutoscalerBehavior{}) {
		out.Spec.Behavior = &behavior
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	if read(hpa, conditionsAnnotation, &conditions) {
		for i := range conditions {
			out.Status.Conditions = append(out.Status.Conditions, newerCondition(&conditions[i]))
		}
	}
	dropAnnotations(&out.Annotations)
	return out
}

func newerMetrics(hpa *autoscalingv1.HorizontalPodAutoscaler) []autoscalingv2.MetricSpec {
	var metrics []autoscalingv2.MetricSpec
	var others []autoscalingv1.MetricSpec
	if read(hpa, metricsAnnotation, &others) {
		for i := range others {
			metrics = append(metrics, newerMetric(&others[i]))
		}
	}
	if percent := hpa.Spec.TargetCPUUtilizationPercentage; percent != nil {
		metrics = append(metrics, cpuMetric(*percent))
	}
	return metrics
}

func newerStatuses(hpa *autoscalingv1.HorizontalPodAutoscaler) []autoscalingv2.MetricStatus {
	var statuses []autoscalingv2.MetricStatus
	var all []autoscalingv1.MetricStatus
	if read(hpa, statusesAnnotation, &all) {
		for i := range all {
			statuses = append(statuses, newerStatus(&all[i]))
		}
		return statuses
	}
	if percent := hpa.Status.CurrentCPUUtilizationPercentage; percent != nil {
		return []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
			Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: percent},
		}}}
	}
	return nil
}

func read(hpa *autoscalingv1.HorizontalPodAutoscaler, key string, into any) bool {
	text, set := hpa.Annotations[key]
	return set && json.Unmarshal([]byte(text), into) == nil
}

// older is the autoscaler in version 1.
func older(hpa *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv1.HorizontalPodAutoscaler {
	hpa = hpa.DeepCopy()
	out := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: hpa.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(hpa.Spec.ScaleTargetRef),
			MinReplicas:    hpa.Spec.MinReplicas, MaxReplicas: hpa.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: hpa.Status.ObservedGeneration, LastScaleTime: hpa.Status.LastScaleTime,
			CurrentReplicas: hpa.Status.CurrentReplicas, DesiredReplicas: hpa.Status.DesiredReplicas,
		},
	}
	dropAnnotations(&out.Annotations)
	var others []autoscalingv1.MetricSpec
	for i := range hpa.Spec.Metrics {
		metric := &hpa.Spec.Metrics[i]
		if percent := cpuTarget(metric); percent == nil {
			others = append(others, olderMetric(metric))
		} else if out.Spec.TargetCPUUtilizationPercentage == nil {
			out.Spec.TargetCPUUtilizationPercentage = percent
		}
	}
	var statuses []autoscalingv1.MetricStatus
	for i := range hpa.Status.CurrentMetrics {
		status := &hpa.Status.CurrentMetrics[i]
		if r := status.Resource; status.Type == autoscalingv2.ResourceMetricSourceType && r != nil && r.Name == corev1.ResourceCPU &&
			r.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
		statuses = append(statuses, olderStatus(status))
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	for i := range hpa.Status.Conditions {
		conditions = append(conditions, olderCondition(&hpa.Status.Conditions[i]))
	}
	annotate(out, metricsAnnotation, others, len(others) > 0)
	annotate(out, statusesAnnotation, statuses, !fitsField(hpa.Status.CurrentMetrics))
	annotate(out, conditionsAnnotation, conditions, len(conditions) > 0)
	annotate(out, behaviorAnnotation, olderBehavior(hpa.Spec.Behavior), hpa.Spec.Behavior != nil)
	return out
}

// fitsField reports that the field of v1 says all there is to say.
func fitsField(statuses []autoscalingv2.MetricStatus) bool {
	if len(statuses) == 0 {
		return true
	}
	r := statuses[0].Resource
	return len(statuses) == 1 && r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageValue == nil && r.Current.Value == nil
}

// cpuTarget is the target that v1 has a field for, nil for any other metric.
func cpuTarget(metric *autoscalingv2.MetricSpec) *int32 {
	if metric.Type != autoscalingv2.ResourceMetricSourceType || metric.Resource == nil || metric.Resource.Name != corev1.ResourceCPU {
		return nil
	}
	return metric.Resource.Target.AverageUtilization
}

func annotate(hpa *autoscalingv1.HorizontalPodAutoscaler, key string, value any, set bool) {
	if !set {
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		return // these types always encode
	}
	if hpa.Annotations == nil {
		hpa.Annotations = map[string]string{}
	}
	hpa.Annotations[key] = string(text)
}

// dropAnnotations removes what the conversion itself wrote, or will write.
func dropAnnotations(annotations *map[string]string) {
	maps.DeleteFunc(*annotations, func(key, _ string) bool {
		return key == metricsAnnotation || key == statusesAnnotation || key == conditionsAnnotation || key == behaviorAnnotation
	})
	if len(*annotations) == 0 {
		*annotations = nil
	}
}
