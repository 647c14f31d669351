package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	customapi "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	customclient "k8s.io/metrics/pkg/client/custom_metrics"
	externalclient "k8s.io/metrics/pkg/client/external_metrics"
)

// customWindow is the window of a custom metric that names none; upstream's.
const customWindow = time.Minute

// source reads metrics. Values are in thousandths.
type source interface {
	Resource(
		ctx context.Context, namespace string, pods labels.Selector, name corev1.ResourceName, container string,
	) (map[string]sample, error)
	Pods(namespace string, pods labels.Selector, metric string, selector labels.Selector) (map[string]sample, error)
	Object(namespace string, of autoscalingv2.CrossVersionObjectReference, metric string, selector labels.Selector) (int64, error)
	External(namespace, metric string, selector labels.Selector) ([]int64, error)
}

// read asks a source for one metric of a spec.
func read(ctx context.Context, s source, namespace string, pods labels.Selector, spec autoscalingv2.MetricSpec) (r reading) {
	selectorOf := func(id autoscalingv2.MetricIdentifier) labels.Selector {
		selector, err := metav1.LabelSelectorAsSelector(id.Selector)
		r.err = err
		return selector
	}
	switch spec.Type {
	case autoscalingv2.ResourceMetricSourceType:
		r.samples, r.err = s.Resource(ctx, namespace, pods, spec.Resource.Name, "")
	case autoscalingv2.ContainerResourceMetricSourceType:
		r.samples, r.err = s.Resource(ctx, namespace, pods, spec.ContainerResource.Name, spec.ContainerResource.Container)
	case autoscalingv2.PodsMetricSourceType:
		if selector := selectorOf(spec.Pods.Metric); r.err == nil {
			r.samples, r.err = s.Pods(namespace, pods, spec.Pods.Metric.Name, selector)
		}
	case autoscalingv2.ObjectMetricSourceType:
		if selector := selectorOf(spec.Object.Metric); r.err == nil {
			var value int64
			value, r.err = s.Object(namespace, spec.Object.DescribedObject, spec.Object.Metric.Name, selector)
			r.values = []int64{value}
		}
	case autoscalingv2.ExternalMetricSourceType:
		if selector := selectorOf(spec.External.Metric); r.err == nil {
			r.values, r.err = s.External(namespace, spec.External.Metric.Name, selector)
		}
	}
	return r
}

// requests is the source that asks the three APIs of metrics.
type requests struct {
	resources resourceclient.PodMetricsesGetter
	custom    customclient.CustomMetricsClient
	external  externalclient.ExternalMetricsClient
}

func (r requests) Resource(
	ctx context.Context, namespace string, pods labels.Selector, name corev1.ResourceName, container string,
) (map[string]sample, error) {
	list, err := r.resources.PodMetricses(namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.String()})
	if err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from resource metrics API")
	}
	samples := make(map[string]sample, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		if used, known := use(m, name, container); known {
			samples[m.Name] = sample{used, m.Timestamp.Time, m.Window.Duration}
		}
	}
	return samples, nil
}

// use is what a pod or one of its containers uses. A pod is known if all of its containers are.
func use(m *metricsapi.PodMetrics, name corev1.ResourceName, container string) (total int64, known bool) {
	for _, c := range m.Containers {
		if container != "" && c.Name != container {
			continue
		}
		used, found := c.Usage[name]
		if !found {
			return 0, false
		}
		total, known = add(total, milli(used)), true
	}
	return total, known
}

func (r requests) Pods(namespace string, pods labels.Selector, metric string, selector labels.Selector) (map[string]sample, error) {
	list, err := r.custom.NamespacedMetrics(namespace).GetForObjects(schema.GroupKind{Kind: "Pod"}, pods, metric, selector)
	if err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from custom metrics API")
	}
	samples := make(map[string]sample, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		window := customWindow
		if m.WindowSeconds != nil {
			window = time.Duration(*m.WindowSeconds) * time.Second
		}
		samples[m.DescribedObject.Name] = sample{milli(m.Value), m.Timestamp.Time, window}
	}
	return samples, nil
}

func (r requests) Object(
	namespace string, of autoscalingv2.CrossVersionObjectReference, metric string, selector labels.Selector,
) (int64, error) {
	kind := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind()
	var value *customapi.MetricValue
	var err error
	if kind == (schema.GroupKind{Kind: "Namespace"}) { // its own, whatever the reference names
		value, err = r.custom.RootScopedMetrics().GetForObject(kind, namespace, metric, selector)
	} else {
		value, err = r.custom.NamespacedMetrics(namespace).GetForObject(kind, of.Name, metric, selector)
	}
	if err != nil {
		return 0, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
	}
	return milli(value.Value), nil
}

func (r requests) External(namespace, metric string, selector labels.Selector) ([]int64, error) {
	list, err := r.external.NamespacedMetrics(namespace).List(metric, selector)
	if err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from external metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from external metrics API")
	}
	var values []int64
	for i := range list.Items {
		values = append(values, milli(list.Items[i].Value))
	}
	return values, nil
}

// milli is a quantity in thousandths, or the largest number there is if it is larger: upstream takes such a value for zero, and
// takes pods away.
func milli(q resource.Quantity) int64 {
	switch {
	case q.CmpInt64(math.MaxInt64/1000) > 0:
		return math.MaxInt64
	case q.CmpInt64(math.MinInt64/1000) < 0:
		return math.MinInt64
	}
	return q.MilliValue()
}
