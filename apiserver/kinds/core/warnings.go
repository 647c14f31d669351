package core

import (
	"crypto/tls"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
)

// Warnings tell of what is accepted but will not do what its author hopes.

func podWarnings(pod *corev1.Pod) []string {
	return podspec.Warnings(&pod.Spec, field.NewPath("spec"))
}

// podCreateWarnings are for who creates a pod by old annotations, or one whose name does for no host.
func podCreateWarnings(pod, old *corev1.Pod) []string {
	msgs := utilvalidation.IsDNS1123Label(pod.Name)
	if old != nil {
		return nil
	}
	warnings := podspec.AppArmorWarnings(pod)
	if len(msgs) > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v",
			msgs,
		))
	}
	return warnings
}

func serviceWarnings(svc *corev1.Service) []string {
	spec := &svc.Spec
	external := spec.Type == corev1.ServiceTypeExternalName
	headless := spec.Type == corev1.ServiceTypeClusterIP && spec.ClusterIP == corev1.ClusterIPNone
	var warnings []string
	for _, w := range []struct {
		when bool
		text string
	}{
		{headless && spec.LoadBalancerIP != "", "spec.loadBalancerIP is ignored for headless services"},
		{headless && len(spec.ExternalIPs) > 0, "spec.externalIPs is ignored for headless services"},
		{headless && spec.SessionAffinity != corev1.ServiceAffinityNone, "spec.SessionAffinity is ignored for headless services"},
		{len(spec.ExternalIPs) > 0 && !headless && !external, "spec.externalIPs is deprecated and may no longer be implemented in some clusters"},
		{external && len(spec.ExternalIPs) > 0, "spec.externalIPs is ignored when spec.type is \"ExternalName\""},
		{!external && spec.ExternalName != "", "spec.externalName is ignored when spec.type is not \"ExternalName\""},
		{ptr.Deref(spec.TrafficDistribution, "") == corev1.ServiceTrafficDistributionPreferClose, "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""},
	} {
		if w.when {
			warnings = append(warnings, w.text)
		}
	}
	return warnings
}

// secretWarnings tells of a key that is not the certificate's.
func secretWarnings(secret *corev1.Secret) []string {
	if secret.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// nodeWarnings tells of a field that nobody reads.
func nodeWarnings(node *corev1.Node) []string {
	if node.Spec.DoNotUseExternalID == "" {
		return nil
	}
	return []string{"spec.externalID: this field is deprecated, and is unused by Kubernetes"}
}
