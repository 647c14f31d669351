package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
)

// Warnings tell of what is accepted but will not do what its author hopes.

func podWarnings(pod *corev1.Pod) []string {
	return podspec.Warnings(&pod.Spec, field.NewPath("spec"))
}

func serviceWarnings(svc *corev1.Service) []string {
	var warnings []string
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerIP != "" {
		warnings = append(warnings, "spec.loadBalancerIP: deprecated in v1.24+, use annotations on the load balancer implementation")
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName && len(svc.Spec.ExternalIPs) > 0 {
		warnings = append(warnings, "spec.externalIPs is ignored when spec.type is \"ExternalName\"")
	}
	if svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.ExternalName != "" {
		warnings = append(warnings, "spec.externalName is ignored when spec.type is not \"ExternalName\"")
	}
	return warnings
}
