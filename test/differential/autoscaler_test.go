package differential

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

const (
	// targetName names the Deployment that is scaled, and the label of its pods.
	targetName = "target"
	// loadName names the ConfigMap that says what the metrics APIs answer.
	loadName = "load"
	// passOffset is after the beginning of a step, so that no later step begins when an autoscaler is looked at (every 15 seconds).
	passOffset = 2 * time.Second
	// seenTime is between changes of pods and of an autoscaler, which come by two watches.
	seenTime = time.Second / 2
)

// autoscalerWorld is a HorizontalPodAutoscaler of a Deployment that nothing runs: the steps make its pods, and say what they use.
type autoscalerWorld struct {
	plain
	first autoscalingv2.HorizontalPodAutoscalerSpec
	load  load
	pods  int32
	seed  uint64
}

func newAutoscaler(g *generator) workload {
	return &autoscalerWorld{first: autoscalerSpec(g), load: newLoad(g), pods: int32(g.IntN(6)), seed: g.Uint64()}
}

// autoscalerSpec is one with the API's defaults.
func autoscalerSpec(g *generator) autoscalingv2.HorizontalPodAutoscalerSpec {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: targetName},
		MaxReplicas:    1 + int32(g.IntN(9)),
	}}
	if g.chance(12) {
		hpa.Spec.ScaleTargetRef.Kind = pick(g, "Nothing", "ConfigMap")
	}
	for range 1 + g.IntN(2) {
		hpa.Spec.Metrics = append(hpa.Spec.Metrics, metricSpec(g))
	}
	hpa.Spec.MinReplicas = maybe(g, min(hpa.Spec.MaxReplicas, int32(1+g.IntN(4))))
	if outside := hpa.Spec.Metrics[0].Type; g.chance(2) && (outside == autoscalingv2.ObjectMetricSourceType || outside == autoscalingv2.ExternalMetricSourceType) {
		hpa.Spec.MinReplicas = new(int32(0))
	}
	if g.chance(2) {
		hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: scalingRules(g), ScaleDown: scalingRules(g)}
	}
	defaults.SetDefaults_HorizontalPodAutoscaler(hpa)
	return hpa.Spec
}

func scalingRules(g *generator) *autoscalingv2.HPAScalingRules {
	if g.chance(4) {
		return nil
	}
	rules := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: maybe(g, pick(g, int32(0), 0, 40, 100, 400))}
	if g.chance(3) {
		rules.Tolerance = new(pick(g, resource.MustParse("0"), resource.MustParse("0.05"), resource.MustParse("0.5")))
	}
	rules.SelectPolicy = maybe(g, pick(g, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect))
	for range g.IntN(3) {
		rules.Policies = append(rules.Policies, autoscalingv2.HPAScalingPolicy{
			Type:  pick(g, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy),
			Value: pick(g, int32(1), 2, 50, 100), PeriodSeconds: pick(g, int32(15), 40, 100),
		})
	}
	return rules
}

func metricSpec(g *generator) autoscalingv2.MetricSpec {
	value := func() *resource.Quantity { return resource.NewMilliQuantity(int64(20+g.IntN(200)), resource.DecimalSI) }
	use := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(20 + g.IntN(120)))}
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: value()}
	whole := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: value()}
	of := pick(g, corev1.ResourceCPU, corev1.ResourceCPU, corev1.ResourceMemory)
	id := autoscalingv2.MetricIdentifier{Name: "requests", Selector: maybe(g, metav1.LabelSelector{MatchLabels: map[string]string{"verb": "get"}})}
	switch g.IntN(8) {
	case 0, 1, 2:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: of, Target: pick(g, use, use, average)}}
	case 3:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: of, Container: pick(g, "c", "c", "beside", "none"), Target: pick(g, use, use, average)}}
	case 4:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: id, Target: average}}
	case 5:
		described := autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: pick(g, "Service", "Namespace"), Name: "s"}
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricSource{DescribedObject: described, Metric: id, Target: pick(g, average, whole)}}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType,
		External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: pick(g, average, whole)}}
}

func (l *autoscalerWorld) create(w *world) {
	pause(passOffset - seenTime)
	reconciletest.Add(w.World, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: loadName, Namespace: w.namespace}, Data: l.load.data()})
	addTarget(w, l.pods)
	follow(w, newGenerator(l.seed))
	pause(seenTime)
	l.createAutoscaler(w, l.first)
}

func (l *autoscalerWorld) createAutoscaler(w *world, spec autoscalingv2.HorizontalPodAutoscalerSpec) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: workloadName, Namespace: w.namespace}, Spec: spec}
	create(w, w.Client.AutoscalingV2().HorizontalPodAutoscalers(w.namespace), hpa)
}

func addTarget(w *world, replicas int32) {
	labels := map[string]string{"app": targetName}
	reconciletest.Add(w.World, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: targetName, Namespace: w.namespace},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}}})
}

func (l *autoscalerWorld) edit(g *generator) (string, func(w *world)) {
	spec, next, replicas, seed := autoscalerSpec(g), newLoad(g), int32(g.IntN(10)), g.Uint64()
	following := func(do func(w *world)) func(w *world) {
		if seed%2 == 0 {
			return do
		}
		return func(w *world) {
			follow(w, newGenerator(seed))
			pause(seenTime)
			do(w)
		}
	}
	switch g.IntN(12) {
	case 0, 1:
		return "spec " + text1(spec), following(func(w *world) {
			change(w, w.Client.AutoscalingV2().HorizontalPodAutoscalers(w.namespace), workloadName,
				func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec = spec })
		})
	case 2:
		return fmt.Sprintf("resize to %d", replicas), following(func(w *world) { resize(w, replicas) })
	case 3:
		return "the target goes or comes back", func(w *world) { replaceTarget(w, replicas) }
	case 4:
		return "the autoscaler is made again " + text1(spec), func(w *world) { l.again(w, spec) }
	case 5, 6, 7, 8:
		return "load " + text1(next), following(func(w *world) { next.set(w) })
	}
	return "pods follow", func(w *world) { follow(w, newGenerator(seed)) }
}

func resize(w *world, replicas int32) {
	change(w, w.Client.AppsV1().Deployments(w.namespace), targetName, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
}

func replaceTarget(w *world, replicas int32) {
	err := w.Client.AppsV1().Deployments(w.namespace).Delete(context.Background(), targetName, metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err):
		addTarget(w, replicas)
	case err != nil:
		w.t.Fatal(err)
	}
}

// again deletes the autoscaler, waits until upstream has forgotten it, which it does when it would look again, and makes another one.
func (l *autoscalerWorld) again(w *world, spec autoscalingv2.HorizontalPodAutoscalerSpec) {
	if err := w.Client.AutoscalingV2().HorizontalPodAutoscalers(w.namespace).Delete(context.Background(), workloadName, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	pause(2*quietTime + passOffset)
	l.createAutoscaler(w, spec)
}

// follow makes as many pods as the target wants, each in some state.
func follow(w *world, g *generator) {
	want := int32(0)
	change(w, w.Client.AppsV1().Deployments(w.namespace), targetName, func(d *appsv1.Deployment) { want = *d.Spec.Replicas })
	there := map[string]bool{}
	for _, p := range w.Pods(w.namespace) {
		there[p.Name] = true
	}
	for i := range int32(podsMax) {
		p := loadedPod(g, i, w.namespace)
		switch {
		case i < want && !there[p.Name]:
			reconciletest.Add(w.World, p)
		case i >= want && there[p.Name]:
			w.RemovePod(p)
		}
	}
	changeStatus(w, w.Client.AppsV1().Deployments(w.namespace), targetName, func(d *appsv1.Deployment) { d.Status.Replicas = min(want, podsMax) })
}

// podsMax is more than any maximum of an autoscaler.
const podsMax = 10

// loadedPod is a pod of the target: most are ready for long, some for a moment, some are not.
func loadedPod(g *generator, i int32, namespace string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i), Namespace: namespace, Labels: map[string]string{"app": targetName}}}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	if !g.chance(3) {
		requests[corev1.ResourceMemory] = resource.MustParse("128")
	}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}
	if g.chance(20) {
		p.Spec.Containers[0].Resources.Requests = nil
	}
	beside := corev1.Container{Name: "beside", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}}
	switch g.IntN(4) {
	case 0:
		p.Spec.Containers = append(p.Spec.Containers, beside)
	case 1:
		beside.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = append(p.Spec.InitContainers, beside)
	}
	started := pick(g, time.Hour, time.Hour, time.Hour, time.Minute, 0)
	if g.chance(6) {
		return p // pending
	}
	reconciletest.SetReady(p, !g.chance(8))
	p.Status.StartTime = &metav1.Time{Time: time.Now().Add(-started)}
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-started / 2))
	}
	return p
}

// excuse: of a target without pods upstream divides a value by their number, and writes what an int64 makes of infinity.
func (l *autoscalerWorld) excuse(_, upstream string) string {
	if strings.Contains(upstream, "-9223372036854775808m") {
		return "upstream divides a value by no pods"
	}
	return ""
}

func (l *autoscalerWorld) describe(w *world, out *strings.Builder) {
	hpa, err := w.Client.AutoscalingV2().HorizontalPodAutoscalers(w.namespace).Get(context.Background(), workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(out, "  %v scaled %s\n", statusOf(hpa), clock(hpa.Status.LastScaleTime))
	for _, c := range hpa.Status.Conditions {
		fmt.Fprintf(out, "  condition %s=%s since %s\n", c.Type, c.Status, clock(&c.LastTransitionTime))
	}
	d, err := w.Client.AppsV1().Deployments(w.namespace).Get(context.Background(), targetName, metav1.GetOptions{})
	if err != nil {
		fmt.Fprintf(out, "  no target\n")
		return
	}
	fmt.Fprintf(out, "  target wants %d has %d at %s\n", *d.Spec.Replicas, d.Status.Replicas, time.Now().UTC().Format(time.TimeOnly))
	w.describePods(out, look)
}
