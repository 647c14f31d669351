package podautoscaler

import (
	"errors"
	"fmt"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var errNoTarget = errors.New(
	"invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")

// reading is what a source of metrics said for one metric of the spec.
type reading struct {
	samples map[string]sample // of pods
	values  []int64           // of what is no pod, in thousandths
	err     error
}

// proposal is what one metric asks for.
type proposal struct {
	replicas int32
	name     string
	status   autoscalingv2.MetricStatus
}

// refusal is why a metric asks for nothing: the reason and cause are those of the condition.
type refusal struct {
	reason string
	cause  error
	err    error // the cause, and which metric it is
}

// ofMetric says of which metric an error is, as the error of a pass does; upstream's conditions and events tell the cause alone.
type ofMetric struct {
	what  string
	cause error
}

func (e ofMetric) Error() string { return e.what + ": " + e.cause.Error() }
func (e ofMetric) Unwrap() error { return e.cause }

// propose evaluates one metric.
func (o *observed) propose(spec autoscalingv2.MetricSpec, r reading) (proposal, *refusal) {
	var p proposal
	var err error
	kind, format := "", ""
	switch spec.Type {
	case autoscalingv2.ResourceMetricSourceType:
		kind, format = "FailedGetResourceMetric", fmt.Sprintf("failed to get %s resource metric value", spec.Resource.Name)
		p, err = o.ofResource(spec, r)
	case autoscalingv2.ContainerResourceMetricSourceType:
		kind = "FailedGetContainerResourceMetric"
		format = fmt.Sprintf("failed to get %s container metric value", spec.ContainerResource.Container)
		p, err = o.ofContainer(spec, r)
	case autoscalingv2.PodsMetricSourceType:
		kind, format = "FailedGetPodsMetric", "failed to get pods metric value"
		p, err = o.ofPods(spec, r)
	case autoscalingv2.ObjectMetricSourceType:
		kind, format = "FailedGetObjectMetric", "failed to get object metric value"
		p, err = o.ofObject(spec, r)
	case autoscalingv2.ExternalMetricSourceType:
		kind, format = "FailedGetExternalMetric", fmt.Sprintf("failed to get %s external metric value", spec.External.Metric.Name)
		p, err = o.ofExternal(spec, r)
	default:
		err = fmt.Errorf("unknown metric source type %q", string(spec.Type))
		return proposal{}, &refusal{"InvalidMetricSourceType", err, err}
	}
	if err != nil {
		cause := err
		if of, named := errors.AsType[ofMetric](err); named {
			cause = of.cause
		}
		return proposal{}, &refusal{kind, cause, fmt.Errorf("%s: %w", format, err)}
	}
	p.status.Type = spec.Type
	return p, nil
}

func (o *observed) ofResource(spec autoscalingv2.MetricSpec, r reading) (proposal, error) {
	replicas, current, by, err := o.resource(spec.Resource.Target, spec.Resource.Name, "", r)
	status := &autoscalingv2.ResourceMetricStatus{Name: spec.Resource.Name, Current: current}
	return proposal{replicas, fmt.Sprintf("%s resource%s", spec.Resource.Name, by), autoscalingv2.MetricStatus{Resource: status}}, err
}

func (o *observed) ofContainer(spec autoscalingv2.MetricSpec, r reading) (proposal, error) {
	s := spec.ContainerResource
	replicas, current, by, err := o.resource(s.Target, s.Name, s.Container, r)
	name := fmt.Sprintf("%s resource", s.Name)
	if by != "" {
		name = fmt.Sprintf("%s container resource%s", s.Name, by)
	}
	status := &autoscalingv2.ContainerResourceMetricStatus{Name: s.Name, Container: s.Container, Current: current}
	return proposal{replicas, name, autoscalingv2.MetricStatus{ContainerResource: status}}, err
}

// resource evaluates CPU or memory, of pods or of one container.
func (o *observed) resource(
	target autoscalingv2.MetricTarget, name corev1.ResourceName, container string, r reading,
) (replicas int32, current autoscalingv2.MetricValueStatus, by string, err error) {
	if target.AverageValue == nil && target.AverageUtilization == nil {
		return 0, current, "", errNoTarget
	}
	what := "usage"
	if target.AverageValue == nil {
		what, by = "utilization", " utilization (percentage of request)"
	}
	replicas, used, err := o.ofSamples(r, name, fmt.Sprintf("metrics for resource %s", name), func() (gauge, error) {
		if target.AverageValue != nil {
			return plain{milli(*target.AverageValue)}, nil
		}
		requests, err := requestsOf(o.pods, container, name)
		return utilization{*target.AverageUtilization, requests}, err
	})
	if err != nil {
		return 0, current, by, fmt.Errorf("failed to get %s %s: %w", name, what, err)
	}
	current.AverageValue = quantity(name, used.average)
	if target.AverageValue == nil {
		current.AverageUtilization = &used.utilization
	}
	return replicas, current, by, nil
}

func (o *observed) ofPods(spec autoscalingv2.MetricSpec, r reading) (proposal, error) {
	s := spec.Pods
	replicas, used, err := o.ofSamples(r, "", "metric "+s.Metric.Name, func() (gauge, error) {
		return plain{milli(*s.Target.AverageValue)}, nil
	})
	current := autoscalingv2.MetricValueStatus{AverageValue: quantity("", used.average)}
	status := &autoscalingv2.PodsMetricStatus{Metric: s.Metric, Current: current}
	return proposal{replicas, "pods metric " + s.Metric.Name, autoscalingv2.MetricStatus{Pods: status}}, err
}

// ofSamples evaluates what each pod uses. Only CPU is judged by when a pod has started.
func (o *observed) ofSamples(r reading, name corev1.ResourceName, what string, against func() (gauge, error)) (int32, load, error) {
	if r.err != nil {
		return 0, load{}, fmt.Errorf("unable to get %s: %w", what, r.err)
	}
	if len(o.pods) == 0 {
		return 0, load{}, errNoPods
	}
	samples := make(map[string]sample, len(r.samples))
	for pod, s := range r.samples {
		samples[pod] = s
	}
	pods := group(o.pods, samples, name, o.now)
	pods.drop(samples)
	if len(samples) == 0 {
		return 0, load{}, errNoSamples
	}
	g, err := against()
	if err != nil {
		return 0, load{}, err
	}
	return replicasOf(o.scale.Spec.Replicas, samples, pods, o.tolerances(), g)
}

func (o *observed) ofObject(spec autoscalingv2.MetricSpec, r reading) (proposal, error) {
	s := spec.Object
	status := &autoscalingv2.ObjectMetricStatus{DescribedObject: s.DescribedObject, Metric: s.Metric}
	p := proposal{status: autoscalingv2.MetricStatus{Object: status}}
	if r.err != nil {
		r.err = fmt.Errorf("unable to get metric %s on %s %s/%s: %w", s.Metric.Name, s.DescribedObject.Kind, o.hpa.Namespace, s.DescribedObject.Name, r.err)
	}
	var err error
	switch {
	case s.Target.Type == autoscalingv2.ValueMetricType && s.Target.Value != nil:
		p.name = fmt.Sprintf("%s metric %s", s.DescribedObject.Kind, s.Metric.Name)
		p.replicas, status.Current, err = o.whole(r, s.Target.Value)
	case s.Target.Type == autoscalingv2.AverageValueMetricType && s.Target.AverageValue != nil:
		p.name = fmt.Sprintf("external metric %s(%+v)", s.Metric.Name, s.Metric.Selector)
		if p.replicas, status.Current, err = o.shared(r, s.Target.AverageValue); err != nil {
			err = ofMetric{fmt.Sprintf("failed to get %s object metric", s.Metric.Name), err}
		}
	default:
		err = errors.New("invalid object metric source: neither a value target nor an average value target was set")
	}
	return p, err
}

func (o *observed) ofExternal(spec autoscalingv2.MetricSpec, r reading) (proposal, error) {
	s := spec.External
	status := &autoscalingv2.ExternalMetricStatus{Metric: s.Metric}
	p := proposal{name: fmt.Sprintf("external metric %s(%+v)", s.Metric.Name, s.Metric.Selector), status: autoscalingv2.MetricStatus{External: status}}
	if r.err != nil {
		r.err = fmt.Errorf("unable to get external metric %s/%s/%+v: %w", o.hpa.Namespace, s.Metric.Name, s.Metric.Selector, r.err)
	}
	var err error
	switch {
	case s.Target.AverageValue != nil:
		if p.replicas, status.Current, err = o.shared(r, s.Target.AverageValue); err != nil {
			err = ofMetric{fmt.Sprintf("failed to get %s external metric", s.Metric.Name), err}
		}
	case s.Target.Value != nil:
		if p.replicas, status.Current, err = o.whole(r, s.Target.Value); err != nil {
			err = ofMetric{"failed to get external metric " + s.Metric.Name, err}
		}
	default:
		err = errors.New("invalid external metric source: neither a value target nor an average value target was set")
	}
	return p, err
}

// whole compares a value with a target of its own; the ready pods count.
func (o *observed) whole(r reading, target *resource.Quantity) (int32, autoscalingv2.MetricValueStatus, error) {
	current := autoscalingv2.MetricValueStatus{}
	if r.err != nil {
		return 0, current, r.err
	}
	value := sum(r.values)
	ratio, replicas, tolerated := float64(value)/float64(milli(*target)), o.scale.Spec.Replicas, o.tolerances()
	if replicas != 0 && !tolerated.within(ratio) && len(o.pods) == 0 {
		return 0, current, fmt.Errorf("unable to calculate ready pods: %w", errNoPods)
	}
	current.Value = quantity("", value)
	return perTarget(replicas, ratio, readyPods(o.pods), tolerated), current, nil
}

// shared compares a value with a target for each pod that exists.
func (o *observed) shared(r reading, target *resource.Quantity) (int32, autoscalingv2.MetricValueStatus, error) {
	if r.err != nil {
		return 0, autoscalingv2.MetricValueStatus{}, r.err
	}
	next, average := perPod(o.scale.Status.Replicas, sum(r.values), milli(*target), o.tolerances())
	return next, autoscalingv2.MetricValueStatus{AverageValue: quantity("", average)}, nil
}

func sum(values []int64) (total int64) {
	for _, v := range values {
		if total = add(total, v); total == math.MaxInt64 {
			break
		}
	}
	return total
}

// quantity writes memory as metrics-server does.
func quantity(name corev1.ResourceName, milli int64) *resource.Quantity {
	if name == corev1.ResourceMemory {
		return resource.NewMilliQuantity(milli, resource.BinarySI)
	}
	return resource.NewMilliQuantity(milli, resource.DecimalSI)
}
