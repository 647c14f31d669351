package usage

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// nodeKind is what nodes use.
func nodeKind() *resource.Any {
	return resource.Erase(resource.Kind[*metricsv1beta1.NodeMetrics]{
		GroupVersionKind: metricsv1beta1.SchemeGroupVersion.WithKind("NodeMetrics"), Plural: "nodes",
		ClusterScoped: true, ReadOnly: true,
		New:     func() *metricsv1beta1.NodeMetrics { return &metricsv1beta1.NodeMetrics{} },
		NewList: func() runtime.Object { return &metricsv1beta1.NodeMetricsList{} },
		Columns: columns(
			func(n *metricsv1beta1.NodeMetrics) corev1.ResourceList { return n.Usage },
			func(n *metricsv1beta1.NodeMetrics) time.Duration { return n.Window.Duration },
		),
	})
}

// podKind is what pods use, by container.
func podKind() *resource.Any {
	return resource.Erase(resource.Kind[*metricsv1beta1.PodMetrics]{
		GroupVersionKind: metricsv1beta1.SchemeGroupVersion.WithKind("PodMetrics"), Plural: "pods",
		ReadOnly: true,
		New:      func() *metricsv1beta1.PodMetrics { return &metricsv1beta1.PodMetrics{} },
		NewList:  func() runtime.Object { return &metricsv1beta1.PodMetricsList{} },
		Columns: columns(
			totalOf,
			func(p *metricsv1beta1.PodMetrics) time.Duration { return p.Window.Duration },
		),
	})
}

// columns are metrics-server's.
func columns[T resource.Object](usage func(T) corev1.ResourceList, window func(T) time.Duration) []resource.Column[T] {
	quantity := func(name corev1.ResourceName) resource.Column[T] {
		return resource.Column[T]{
			Name: string(name), Type: "string", Format: "quantity",
			Cell: func(obj T, _ time.Time) any { q := usage(obj)[name]; return q.String() },
		}
	}
	name := column.Name[T]()
	name.Description = "Name of the resource"
	return []resource.Column[T]{
		name, quantity(corev1.ResourceCPU), quantity(corev1.ResourceMemory),
		{
			Name: "Window", Type: "string", Format: "duration",
			Cell: func(obj T, _ time.Time) any { return window(obj).String() },
		},
	}
}

func totalOf(p *metricsv1beta1.PodMetrics) corev1.ResourceList {
	var cpu, memory apiresource.Quantity
	for _, c := range p.Containers {
		cpu.Add(*c.Usage.Cpu())
		memory.Add(*c.Usage.Memory())
	}
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}
