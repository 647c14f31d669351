package autoscaling

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"
)

// What v1 has no fields for survives a client that knows only v1.
func TestOlderVersionKeepsEverything(t *testing.T) {
	stored := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {name: web, annotations: {mine: kept}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
  behavior: {scaleDown: {stabilizationWindowSeconds: 60, tolerance: 500m}}
  metrics:
  - {type: External, external: {metric: {name: queue, selector: {matchLabels: {a: b}}}, target: {type: AverageValue, averageValue: 30}}}
  - {type: Object, object: {describedObject: {kind: Service, name: web}, metric: {name: rps}, target: {type: Value, value: 5}}}
  - {type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: "100"}}}
  - {type: ContainerResource, containerResource: {name: cpu, container: app, target: {type: Utilization, averageUtilization: 10}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
status:
  currentReplicas: 2
  desiredReplicas: 3
  conditions: [{type: AbleToScale, status: "True", reason: Fine, lastTransitionTime: "2026-07-01T11:00:00Z"}]
  currentMetrics:
  - {type: Pods, pods: {metric: {name: rps}, current: {averageValue: "90"}}}
  - {type: Resource, resource: {name: cpu, current: {averageUtilization: 42, averageValue: 420m}}}
`), stored); err != nil {
		t.Fatal(err)
	}
	v1 := older(stored)
	if *v1.Spec.TargetCPUUtilizationPercentage != 50 || *v1.Status.CurrentCPUUtilizationPercentage != 42 || v1.Annotations["mine"] != "kept" {
		t.Errorf("v1 = %+v", v1)
	}
	if diff := cmp.Diff(stored, newer(v1)); diff != "" {
		t.Error("there and back (-was +is):\n", diff)
	}
}

// A client of v1 writes what it knows; the rest stands in annotations that the other
// half of the object owns.
func TestOlderVersionWritesItsHalf(t *testing.T) {
	old := older(&autoscalingv2.HorizontalPodAutoscaler{
		Spec:   autoscalingv2.HorizontalPodAutoscalerSpec{Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{}}},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.AbleToScale}}},
	})
	old.Generation = 3
	spec, status := old.DeepCopy(), old.DeepCopy()
	spec.Annotations, status.Annotations = nil, nil
	prepareUpdateV1(spec, old)
	if _, kept := spec.Annotations[conditionsAnnotation]; !kept || spec.Annotations[behaviorAnnotation] != "" || spec.Generation != 4 {
		t.Errorf("after an update of the spec: generation %d, %v", spec.Generation, spec.Annotations)
	}
	prepareStatusV1(status, old)
	if _, kept := status.Annotations[behaviorAnnotation]; !kept || status.Annotations[conditionsAnnotation] != "" {
		t.Errorf("after an update of the status: %v", status.Annotations)
	}
}

// TestBehaviorAnnotation: version 1 spells the behavior with capitals, and reads either.
func TestBehaviorAnnotation(t *testing.T) {
	seconds, policy := int32(3), autoscalingv2.MaxChangePolicySelect
	want := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: &seconds, SelectPolicy: &policy,
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}},
	}}
	hpa := older(&autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{Behavior: want}})
	const text = `{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":3,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null}}`
	if got := hpa.Annotations[behaviorAnnotation]; got != text {
		t.Errorf("got %s", got)
	}
	small, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, annotation := range []string{text, string(small)} {
		hpa.Annotations[behaviorAnnotation] = annotation
		if diff := cmp.Diff(want, newer(hpa).Spec.Behavior); diff != "" {
			t.Errorf("%s (-want +got):\n%s", annotation, diff)
		}
	}
}
