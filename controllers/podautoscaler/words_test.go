package podautoscaler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// TestTheConditionTellsTheCause: of a metric that cannot be read the condition tells the cause alone, as upstream's does.
func TestTheConditionTellsTheCause(t *testing.T) {
	o := seen(external(1, 10), 500)
	o.readings = []reading{{err: errors.New("no answer")}}
	p := planOf(o)
	const want = "the HPA was unable to compute the replica count: unable to get external metric ns/queue/nil: no answer"
	if got := messageOf(p, autoscalingv2.ScalingActive); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(p.err.Error(), "failed to get external metric queue: unable to get") {
		t.Errorf("the error of the pass does not say which metric it is: %v", p.err)
	}
}

// TestPassesSayTheSame: of pods that request nothing the same one is told, in whatever order they come.
func TestPassesSayTheSame(t *testing.T) {
	o := seen(autoscaler(1, 10), 500, 500, 500)
	for _, pod := range o.pods[1:] {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	}
	first := planOf(o)
	slices.Reverse(o.pods)
	second := planOf(o)
	a, b := messageOf(first, autoscalingv2.ScalingActive), messageOf(second, autoscalingv2.ScalingActive)
	if a != b || !strings.Contains(a, "of Pod p1") {
		t.Errorf("%q, and then %q", a, b)
	}
}

func messageOf(p plan, kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range p.status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

// TestLongerWindowsBringNothingBack: what the windows of a pass did not look back to has made room, and is not there for longer ones.
func TestLongerWindowsBringNothingBack(t *testing.T) {
	h := history{}.begun(3, noon)
	for n := range int32(4) {
		now := noon.Add(time.Duration(n+1) * period)
		h = h.recommended(7+n, now, now)
	}
	if len(h.recommendations) != 1 || h.recommendations[0].replicas != 10 {
		t.Errorf("%+v", h.recommendations)
	}
	behavior := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 20}},
	}}
	for n := range 4 {
		h = h.changed(1, 2, noon.Add(time.Duration(n)*period), behavior)
	}
	if len(h.ups) != 2 {
		t.Errorf("%+v", h.ups)
	}
}
