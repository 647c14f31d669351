package autoscaling

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	kind "github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// defaultUtilization is the wanted use of the CPUs, in percent of the requests.
	defaultUtilization = 80
	// Without other rules, pods may double or grow by four in 15 s, and all go in 15 s.
	defaultPolicyPercent = 100
	defaultPolicyPods    = 4
	defaultPolicySeconds = 15
	// targetsCellMax is how many metrics a table cell shows.
	targetsCellMax = 2
)

func autoscalers() kind.Kind[*autoscalingv2.HorizontalPodAutoscaler] {
	return kind.Kind[*autoscalingv2.HorizontalPodAutoscaler]{
		GroupVersionKind: autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		Plural:           "horizontalpodautoscalers",
		ShortNames:       []string{"hpa"},
		Categories:       []string{"all"},
		New:              func() *autoscalingv2.HorizontalPodAutoscaler { return &autoscalingv2.HorizontalPodAutoscaler{} },
		NewList:          func() runtime.Object { return &autoscalingv2.HorizontalPodAutoscalerList{} },
		Default:          defaultAutoscaler,
		Validate:         func(hpa *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList { return validateAutoscaler(hpa, nil) },
		ValidateUpdate:   validateAutoscaler,
		ValidateStatus:   validateAutoscalerStatus,
		Spec:             func(hpa *autoscalingv2.HorizontalPodAutoscaler) any { return &hpa.Spec },
		Status:           func(hpa *autoscalingv2.HorizontalPodAutoscaler) any { return &hpa.Status },
		Generation:       true,
		Columns: autoscalerColumns(
			func(hpa *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler { return hpa },
		),
	}
}

func defaultAutoscaler(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	rule.DefaultPointer(&hpa.Spec.MinReplicas, 1)
	if len(hpa.Spec.Metrics) == 0 {
		hpa.Spec.Metrics = []autoscalingv2.MetricSpec{cpuMetric(defaultUtilization)}
	}
	if behavior := hpa.Spec.Behavior; behavior != nil {
		percent := autoscalingv2.HPAScalingPolicy{
			Type:          autoscalingv2.PercentScalingPolicy,
			Value:         defaultPolicyPercent,
			PeriodSeconds: defaultPolicySeconds,
		}
		pods := autoscalingv2.HPAScalingPolicy{
			Type:          autoscalingv2.PodsScalingPolicy,
			Value:         defaultPolicyPods,
			PeriodSeconds: defaultPolicySeconds,
		}
		defaultRules(&behavior.ScaleUp, pods, percent)
		rule.DefaultPointer(&behavior.ScaleUp.StabilizationWindowSeconds, 0)
		defaultRules(&behavior.ScaleDown, percent)
	}
}

func cpuMetric(utilization int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name:   corev1.ResourceCPU,
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization},
	}}
}

func defaultRules(rules **autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	rule.DefaultPointer(rules, autoscalingv2.HPAScalingRules{})
	rule.DefaultPointer(&(*rules).SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if (*rules).Policies == nil {
		(*rules).Policies = policies
	}
}

// autoscalerColumns are the same for both versions: as reads the stored form.
func autoscalerColumns[T kind.Object](as func(T) *autoscalingv2.HorizontalPodAutoscaler) []kind.Column[T] {
	spec, status := autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc(), autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()
	text := func(name, description string, cell func(*autoscalingv2.HorizontalPodAutoscaler) string) kind.Column[T] {
		return column.Text(name, description, 0, func(obj T) string { return cell(as(obj)) })
	}
	// Upstream calls these columns strings though the cells are numbers.
	count := func(name, description string, cell func(*autoscalingv2.HorizontalPodAutoscaler) int32) kind.Column[T] {
		c := column.Int(name, description, func(obj T) int64 { return int64(cell(as(obj))) })
		c.Type = "string"
		return c
	}
	return []kind.Column[T]{
		column.Name[T](),
		text("Reference", spec["scaleTargetRef"], func(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
			return hpa.Spec.ScaleTargetRef.Kind + "/" + hpa.Spec.ScaleTargetRef.Name
		}),
		text("Targets", spec["metrics"], targetsCell),
		text("MinPods", spec["minReplicas"], func(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
			if hpa.Spec.MinReplicas == nil {
				return "<unset>"
			}
			return fmt.Sprint(*hpa.Spec.MinReplicas)
		}),
		count("MaxPods", spec["maxReplicas"], func(hpa *autoscalingv2.HorizontalPodAutoscaler) int32 { return hpa.Spec.MaxReplicas }),
		count(
			"Replicas",
			status["currentReplicas"],
			func(hpa *autoscalingv2.HorizontalPodAutoscaler) int32 { return hpa.Status.CurrentReplicas },
		),
		column.Age[T](),
	}
}

// targetsCell shows what is measured of what is wanted, for the first metrics.
func targetsCell(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(hpa.Spec.Metrics) == 0 {
		return column.None
	}
	var cells []string
	for i := range hpa.Spec.Metrics {
		var status autoscalingv2.MetricStatus
		if i < len(hpa.Status.CurrentMetrics) {
			status = hpa.Status.CurrentMetrics[i]
		}
		cells = append(cells, targetCell(&hpa.Spec.Metrics[i], &status))
	}
	if len(cells) <= targetsCellMax {
		return strings.Join(cells, ", ")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(cells[:targetsCellMax], ", "), len(cells)-targetsCellMax)
}

func targetCell(spec *autoscalingv2.MetricSpec, status *autoscalingv2.MetricStatus) string {
	switch {
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		return valueCell(&spec.External.Target, ptr.Deref(status.External, autoscalingv2.ExternalMetricStatus{}).Current)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		return valueCell(&spec.Object.Target, ptr.Deref(status.Object, autoscalingv2.ObjectMetricStatus{}).Current)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		current := ptr.Deref(status.Pods, autoscalingv2.PodsMetricStatus{}).Current
		return quantityCell(current.AverageValue) + "/" + quantityCell(spec.Pods.Target.AverageValue)
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		return string(
			spec.Resource.Name,
		) + ": " + utilizationCell(
			&spec.Resource.Target,
			ptr.Deref(status.Resource, autoscalingv2.ResourceMetricStatus{}).Current,
		)
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		return string(spec.ContainerResource.Name) + ": " +
			utilizationCell(
				&spec.ContainerResource.Target,
				ptr.Deref(status.ContainerResource, autoscalingv2.ContainerResourceMetricStatus{}).Current,
			)
	}
	return "<unknown type>"
}

func quantityCell(q *resource.Quantity) string {
	if q == nil {
		return column.Unknown
	}
	return q.String()
}

func valueCell(target *autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return fmt.Sprintf("%s/%s (avg)", quantityCell(current.AverageValue), target.AverageValue)
	}
	return quantityCell(current.Value) + "/" + quantityCell(target.Value)
}

func utilizationCell(target *autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return quantityCell(current.AverageValue) + "/" + target.AverageValue.String()
	}
	percent := func(value *int32, missing string) string {
		if value == nil {
			return missing
		}
		return fmt.Sprintf("%d%%", *value)
	}
	return percent(current.AverageUtilization, column.Unknown) + "/" + percent(target.AverageUtilization, "<auto>")
}
