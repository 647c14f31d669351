package scenes

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/simulated"
)

// autoscaling: pods that use all of what they request become four, and two when they use next to nothing.
func autoscaling(s *scene) {
	s.deploy("shop", 2, func(d *appsv1.Deployment) { use(d, "100m") })
	s.seeDeployment("shop", "complete", complete)
	half, least, now := int32(50), int32(2), int32(0)
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"},
			MinReplicas:    &least, MaxReplicas: 4,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &now},
			},
		},
	}
	scalers := s.client.AutoscalingV2().HorizontalPodAutoscalers(s.namespace)
	if _, err := scalers.Create(s.Context(), autoscaler, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.seeDeployment("shop", "four pods under load", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 4 && complete(d) })
	s.change("shop", func(d *appsv1.Deployment) { use(d, "1m") })
	s.seeDeployment("shop", "two pods without", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 && complete(d) })
	got, err := scalers.Get(s.Context(), "shop", metav1.GetOptions{})
	if err != nil || got.Status.DesiredReplicas != 2 || got.Status.LastScaleTime == nil {
		s.Errorf("%+v %v", got.Status, err)
	}
}

// use says how much CPU each pod of the Deployment seems to use.
func use(d *appsv1.Deployment, cpu string) {
	d.Spec.Template.Annotations = map[string]string{simulated.CPUAnnotation: cpu}
}
