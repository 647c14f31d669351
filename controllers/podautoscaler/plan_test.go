package podautoscaler

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// autoscaler wants half of the requested CPU used.
func autoscaler(least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	half := int32(50)
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: &least, MaxReplicas: most,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half},
			}}},
		},
	}
}

// external wants 10 of a metric in all.
func external(least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	hpa := autoscaler(least, most)
	hpa.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: resource.NewQuantity(10, resource.DecimalSI)},
	}}}
	return hpa
}

func pod(name string, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	started := metav1.NewTime(noon.Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status, LastTransitionTime: started},
		}},
	}
}

// seen is a target of ready pods that use so many thousandths of a CPU; a negative number is a pod without a sample.
func seen(hpa *autoscalingv2.HorizontalPodAutoscaler, uses ...int64) observed {
	o := observed{hpa: hpa, now: noon, scale: &autoscalingv1.Scale{}}
	o.scale.Spec.Replicas, o.scale.Status.Replicas = int32(len(uses)), int32(len(uses))
	r := reading{samples: map[string]sample{}}
	for i, use := range uses {
		name := fmt.Sprint("p", i)
		o.pods = append(o.pods, pod(name, true))
		if use >= 0 {
			r.samples[name] = sample{value: use, at: noon, window: time.Minute}
		}
	}
	o.readings = []reading{r}
	return o
}

func conditionOf(p plan, kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range p.status.Conditions {
		if c.Type == kind {
			return fmt.Sprint(c.Status, " ", c.Reason)
		}
	}
	return ""
}

func TestPlan(t *testing.T) {
	zero := external(0, 10)
	asleep := external(0, 10)
	asleep.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScaledToZero, Status: corev1.ConditionTrue}}
	values := func(o observed, v ...int64) observed { o.readings = []reading{{values: v}}; return o }
	failing := seen(autoscaler(1, 10), 500, 500)
	failing.readings[0].err = errors.New("no metrics")
	unready := seen(autoscaler(1, 10), 1000, 1000, 1000)
	unready.pods[2].Status.Phase = corev1.PodPending
	tolerant := autoscaler(1, 10)
	two := resource.MustParse("1.2")
	tolerant.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: &two}}
	endless := autoscaler(1, 9)
	endless.Spec.Metrics[0].Resource.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("9E"))}
	for _, c := range []struct {
		name            string
		o               observed
		desired         int32
		rescale         bool
		active, limited string
		settled         bool
	}{
		{"at its target", seen(autoscaler(1, 10), 500, 500), 2, false, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"within the tolerance", seen(autoscaler(1, 10), 540, 550), 2, false, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"twice the load", seen(autoscaler(1, 10), 1000, 1000), 4, true, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"too fast", seen(autoscaler(1, 30), 9000, 9000, 9000), 6, true, "True ValidMetricFound", "True ScaleUpLimit", false},
		{"too many", seen(autoscaler(1, 3), 1000, 1000), 3, true, "True ValidMetricFound", "True TooManyReplicas", false},
		{"too few", seen(autoscaler(2, 10), 0, 0), 2, false, "True ValidMetricFound", "True TooFewReplicas", true},
		{"above the maximum", seen(autoscaler(1, 1), 0, 0), 1, true, "", "", false},
		{"below the minimum", seen(autoscaler(3, 9), 0, 0), 3, true, "", "", false},
		{"stopped by hand", seen(autoscaler(1, 9)), 0, false, "False ScalingDisabled", "", false},
		{"a missing one is idle on the way up", seen(autoscaler(1, 10), 1000, 1000, -1), 4, true, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"a missing one is busy on the way down", seen(autoscaler(1, 10), 100, 100, -1), 3, false, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"a pending one is idle", unready, 4, true, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"no metrics", failing, 0, false, "False FailedGetResourceMetric", "", false},
		{"a tolerance of its own", seen(tolerant, 1000, 1000), 2, false, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"to zero", values(seen(zero, 0, 0), 0), 0, true, "True ValidMetricFound", "False DesiredWithinRange", true},
		{"from zero", values(seen(asleep), 25000), 3, true, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"a huge value", values(seen(external(1, 9), 0, 0), math.MaxInt64, math.MaxInt64), 4, true, "True ValidMetricFound", "True ScaleUpLimit", false},
		{"a negative value", values(seen(external(1, 9), 0), -5000), 1, false, "True ValidMetricFound", "True TooFewReplicas", true},
		{"a target beyond counting", seen(endless, 0, 500), 2, false, "True ValidMetricFound", "False DesiredWithinRange", false},
		{"huge samples", seen(autoscaler(1, 9), math.MaxInt64, math.MaxInt64), 4, true, "True ValidMetricFound", "True ScaleUpLimit", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.settled { // nothing recent holds it
				c.o.history = history{recommendations: []moment{{replicas: 9, at: noon.Add(-time.Hour)}}}
			}
			p := planOf(c.o)
			active, limited := conditionOf(p, autoscalingv2.ScalingActive), conditionOf(p, autoscalingv2.ScalingLimited)
			if p.status.DesiredReplicas != c.desired || p.rescale != c.rescale || active != c.active || limited != c.limited {
				t.Errorf("desired %d, rescale %v, active %q, limited %q; want %d, %v, %q, %q (%v)",
					p.status.DesiredReplicas, p.rescale, active, limited, c.desired, c.rescale, c.active, c.limited, p.err)
			}
		})
	}
}

func rules(
	choice autoscalingv2.ScalingPolicySelect, window int32, policies ...autoscalingv2.HPAScalingPolicy,
) *autoscalingv2.HPAScalingRules {
	return &autoscalingv2.HPAScalingRules{SelectPolicy: &choice, StabilizationWindowSeconds: &window, Policies: policies}
}

func TestBehavior(t *testing.T) {
	pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 60}
	share := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 10, PeriodSeconds: 60}
	greatest, least := autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect
	before := func(age time.Duration, n int32) []moment { return []moment{{replicas: n, at: noon.Add(-age)}} }
	for _, c := range []struct {
		name     string
		up, down *autoscalingv2.HPAScalingRules
		history  history
		wanted   int32
		want     int32
		reason   string
	}{
		{"the greater step up", rules(greatest, 0, pods, share), rules(greatest, 0), history{}, 50, 24, "ScaleUpLimit"},
		{"the smaller step up", rules(least, 0, pods, share), rules(greatest, 0), history{}, 50, 22, "ScaleUpLimit"},
		{"no step up", rules(autoscalingv2.DisabledPolicySelect, 0), rules(greatest, 0), history{}, 50, 20, "ScaleUpLimit"},
		{"the greater step down", rules(greatest, 0), rules(greatest, 0, pods, share), history{}, 1, 16, "ScaleDownLimit"},
		{"the smaller step down", rules(greatest, 0), rules(least, 0, pods, share), history{}, 1, 18, "ScaleDownLimit"},
		{"a step just made counts", rules(greatest, 0, pods), rules(greatest, 0), history{ups: before(30*time.Second, 3)}, 50, 21, "ScaleUpLimit"},
		{"an old step does not", rules(greatest, 0, pods), rules(greatest, 0), history{ups: before(2*time.Minute, 3)}, 50, 24, "ScaleUpLimit"},
		{"held up", rules(greatest, 60, pods), rules(greatest, 0), history{recommendations: before(30*time.Second, 21)}, 50, 21, "DesiredWithinRange"},
		{"held down", rules(greatest, 0), rules(greatest, 60, pods), history{recommendations: before(30*time.Second, 19)}, 1, 19, "DesiredWithinRange"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bounds{20, 1, 100, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: c.up, ScaleDown: c.down}, c.history, noon}
			stable, _ := b.stabilized(c.wanted)
			got, why := b.limited(stable)
			if got != c.want || why.reason != c.reason {
				t.Errorf("%d %s, want %d %s", got, why.reason, c.want, c.reason)
			}
		})
	}
}

// TestGeneratedPlans: whatever metrics say, the plan stays in the range with a reason, and one that failed scales nothing
// and says so in a condition.
func TestGeneratedPlans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	odd := []int64{-1, 0, 1, 500, 1000, math.MaxInt64, math.MaxInt64 / 2}
	for range 20000 {
		least := r.Int32N(4)
		hpa := autoscaler(least, least+1+r.Int32N(20))
		if least == 0 {
			hpa = external(least, 1+r.Int32N(20))
		}
		uses := make([]int64, r.IntN(20))
		for i := range uses {
			uses[i] = odd[r.IntN(len(odd))]
		}
		o := seen(hpa, uses...)
		o.readings[0].values = []int64{odd[r.IntN(len(odd))], -odd[r.IntN(len(odd))]}
		p := planOf(o)
		if p.rescale && (p.wanted < least || p.wanted > hpa.Spec.MaxReplicas || p.reason == "") {
			t.Fatalf("%v: from %d to %d because of %q, of %d to %d", uses, len(uses), p.wanted, p.reason, least, hpa.Spec.MaxReplicas)
		}
		if p.err != nil && (p.rescale || conditionOf(p, autoscalingv2.ScalingActive)[:5] != "False") {
			t.Fatalf("%v: %v, and yet %+v", uses, p.err, p.status.Conditions)
		}
	}
}
