package podautoscaler

import (
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// globalTolerance is the tolerance of an autoscaler that names none; upstream's.
const globalTolerance = 0.1

// observed is all that a plan is made from. Nothing in it is changed.
type observed struct {
	hpa      *autoscalingv2.HorizontalPodAutoscaler
	scale    *autoscalingv1.Scale
	selector *selectorFault // nil if pods is what the selector chooses
	pods     []*corev1.Pod  // of the target
	readings []reading      // one for each metric of the spec, if measures says so
	history  history        // before this pass
	now      time.Time
}

// event is one of type Warning.
type event struct{ reason, message string }

// plan is what follows.
type plan struct {
	status  autoscalingv2.HorizontalPodAutoscalerStatus // if the scale is written or need not be
	rescale bool
	wanted  int32
	reason  string // of the rescale
	history history
	events  []event
	err     error // for the log; the plan is to be carried out nevertheless
}

// start is what is known before metrics are read.
type start struct {
	minimum, wanted int32
	reason          string
	rescale         bool
	measure         bool
	disabled        bool
	woken           bool // by this controller scaled to zero before
}

// begin decides whether metrics are needed.
func begin(hpa *autoscalingv2.HorizontalPodAutoscaler, current int32) start {
	s := start{minimum: minimum(hpa), woken: scaledToZero(hpa)}
	switch {
	case current == 0:
		s.measure = s.woken && (s.minimum != 0 || measuresWithoutPods(hpa))
		s.disabled = !s.measure
	case current > hpa.Spec.MaxReplicas:
		s.wanted, s.reason, s.rescale = hpa.Spec.MaxReplicas, "Current number of replicas above Spec.MaxReplicas", true
	case current < s.minimum:
		s.wanted, s.reason, s.rescale = s.minimum, belowMinimum, true
	default:
		s.measure = true
	}
	return s
}

const belowMinimum = "Current number of replicas below Spec.MinReplicas"

func minimum(hpa *autoscalingv2.HorizontalPodAutoscaler) int32 {
	if hpa.Spec.MinReplicas == nil {
		return 1
	}
	return *hpa.Spec.MinReplicas
}

// measuresWithoutPods reports whether a metric tells of load while there is no pod.
func measuresWithoutPods(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
	for _, m := range hpa.Spec.Metrics {
		if m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType {
			return true
		}
	}
	return false
}

// planOf decides how many replicas there should be, and what the status says.
func planOf(o observed) plan {
	current := o.scale.Spec.Replicas
	p := plan{status: *o.hpa.Status.DeepCopy(), history: o.history.begun(current, o.now)}
	p.set(o.now, autoscalingv2.AbleToScale, true, note{"SucceededGetScale", "the HPA controller was able to get the target's current scale"})
	s := begin(o.hpa, current)
	p.wanted, p.reason, p.rescale = s.wanted, s.reason, s.rescale
	var metrics []autoscalingv2.MetricStatus
	if s.disabled {
		p.set(o.now, autoscalingv2.ScalingActive, false, note{"ScalingDisabled", "scaling is disabled since the replica count of the target is zero"})
	}
	if s.measure {
		asked, name, statuses, measured := p.measure(&o)
		metrics = statuses
		if !measured {
			p.describe(&o, p.status.DesiredReplicas, metrics)
			return p
		}
		p.choose(&o, s, max(asked, 0), name)
	}
	desired := current
	if p.rescale {
		desired = p.wanted
	}
	p.describe(&o, desired, metrics)
	return p
}

// describe fills in what is not a condition.
func (p *plan) describe(o *observed, desired int32, metrics []autoscalingv2.MetricStatus) {
	p.status.CurrentReplicas, p.status.DesiredReplicas, p.status.CurrentMetrics = o.scale.Spec.Replicas, desired, metrics
	generation := o.hpa.Generation
	p.status.ObservedGeneration = &generation
}

// measure asks all metrics; the largest answer counts. If some have none, what the others say may only add pods.
func (p *plan) measure(o *observed) (replicas int32, name string, statuses []autoscalingv2.MetricStatus, measured bool) {
	if f := o.selector; f != nil {
		if f.event != (event{}) {
			p.events = append(p.events, f.event)
			p.set(o.now, autoscalingv2.ScalingActive, false, f.condition)
		}
		return 0, "", nil, p.fail(f.err)
	}
	statuses = make([]autoscalingv2.MetricStatus, len(o.hpa.Spec.Metrics))
	var first *refusal
	refused := 0
	for i, spec := range o.hpa.Spec.Metrics {
		answer, no := o.propose(spec, o.readings[i])
		if no != nil {
			p.events = append(p.events, event{no.reason, no.cause.Error()})
			if refused++; first == nil {
				first = no
			}
			continue
		}
		if statuses[i] = answer.status; replicas == 0 || answer.replicas > replicas {
			replicas, name = answer.replicas, answer.name
		}
	}
	if first != nil {
		p.err = fmt.Errorf("invalid metrics (%v invalid out of %v), first error is: %w", refused, len(statuses), first.err)
	}
	if refused >= len(statuses) || refused > 0 && replicas < o.scale.Spec.Replicas {
		if first == nil {
			return 0, "", statuses, p.fail(errors.New("the spec names no metric"))
		}
		message := fmt.Sprintf("the HPA was unable to compute the replica count: %v", first.cause)
		p.set(o.now, autoscalingv2.ScalingActive, false, note{first.reason, message})
		return 0, "", statuses, p.fail(p.err)
	}
	message := "the HPA was able to successfully calculate a replica count from " + name
	p.set(o.now, autoscalingv2.ScalingActive, true, note{"ValidMetricFound", message})
	return replicas, name, statuses, true
}

// fail ends a plan that cannot scale.
func (p *plan) fail(err error) (measured bool) {
	p.err = err
	p.events = append(p.events, event{"FailedComputeMetricsReplicas", err.Error()})
	return false
}

// choose limits what metrics ask for by the range, the behavior and the history.
func (p *plan) choose(o *observed, s start, asked int32, name string) {
	current := o.scale.Spec.Replicas
	switch {
	case asked > current:
		p.reason = name + " above target"
	case asked < current:
		p.reason = "All metrics below target"
	}
	b := bounds{current, s.minimum, o.hpa.Spec.MaxReplicas, o.hpa.Spec.Behavior, p.history, o.now}
	stable, held := b.stabilized(asked)
	if stable == asked {
		held = steady
	}
	p.history = p.history.recommended(asked, o.now, b.earliest())
	p.set(o.now, autoscalingv2.AbleToScale, true, held)
	wanted, why := b.limited(stable)
	p.set(o.now, autoscalingv2.ScalingLimited, wanted != stable, why)
	if current == 0 && s.minimum != 0 && s.woken && wanted < s.minimum {
		if wanted = s.minimum; p.reason == "" {
			p.reason = belowMinimum
		}
	}
	p.wanted, p.rescale = wanted, wanted != current
}

// rescaled adds to a plan that the scale was written.
func (p *plan) rescaled(o *observed) {
	from, now := o.scale.Spec.Replicas, metav1.NewTime(o.now)
	p.set(o.now, autoscalingv2.AbleToScale, true,
		note{"SucceededRescale", fmt.Sprintf("the HPA controller was able to update the target scale to %d", p.wanted)})
	if o.hpa.Spec.Behavior != nil {
		p.history = p.history.changed(from, p.wanted, o.now, o.hpa.Spec.Behavior)
	}
	p.status.LastScaleTime = &now
	if from > 0 && p.wanted == 0 && minimum(o.hpa) == 0 && measuresWithoutPods(o.hpa) {
		p.set(o.now, autoscalingv2.ScaledToZero, true, note{"ScaledToZero", "the HPA controller scaled the workload to zero"})
	} else {
		p.set(o.now, autoscalingv2.ScaledToZero, false, note{"NotScaledToZero", "the HPA controller did not scale the workload to zero"})
	}
}

// refused adds that the scale could not be written. What was desired before stays in the status.
func (p *plan) refused(o *observed, err error) {
	p.err = fmt.Errorf("failed to rescale: %w", err)
	p.status.DesiredReplicas = o.hpa.Status.DesiredReplicas
	p.set(o.now, autoscalingv2.AbleToScale, false,
		note{"FailedUpdateScale", fmt.Sprintf("the HPA controller was unable to update the target scale: %v", err)})
	p.events = append(p.events, event{"FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", p.wanted, p.reason, err)})
}

// unscalable is the plan if the target has no scale.
func unscalable(hpa *autoscalingv2.HorizontalPodAutoscaler, h history, err error, now time.Time) plan {
	p := plan{status: *hpa.Status.DeepCopy(), history: h, events: []event{{"FailedGetScale", err.Error()}}, err: err}
	p.set(now, autoscalingv2.AbleToScale, false,
		note{"FailedGetScale", fmt.Sprintf("the HPA controller was unable to get the target's current scale: %v", err)})
	return p
}

func (p *plan) set(now time.Time, kind autoscalingv2.HorizontalPodAutoscalerConditionType, holds bool, why note) {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	list := p.status.Conditions
	at := len(list)
	for i := range list {
		if list[i].Type == kind {
			at = i
		}
	}
	if at == len(list) {
		list = append(list, autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind})
	}
	if list[at].Status != status {
		list[at].LastTransitionTime = metav1.NewTime(now)
	}
	list[at].Status, list[at].Reason, list[at].Message = status, why.reason, why.message
	p.status.Conditions = list
}

func scaledToZero(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.ScaledToZero {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (o *observed) tolerances() tolerances {
	t := tolerances{globalTolerance, globalTolerance}
	if b := o.hpa.Spec.Behavior; b != nil {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			t.down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			t.up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return t
}
