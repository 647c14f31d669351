package core

import (
	"crypto/tls"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
)

// Warnings tell of what is accepted but will not do what its author hopes.

// podWarnings are for who creates a pod: nobody changes what they are about.
func podWarnings(pod, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	warnings := podspec.AppArmorWarnings(pod)
	if msgs := utilvalidation.IsDNS1123Label(pod.Name); len(msgs) > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v",
			msgs,
		))
	}
	return append(warnings, podwarnings.Pod(pod)...)
}

func serviceWarnings(svc *corev1.Service) []string {
	spec := &svc.Spec
	var warnings []string
	if _, hints := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; hints {
		warnings = append(warnings, fmt.Sprintf("annotation %s is deprecated, please use %s instead",
			corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	}
	external := spec.Type == corev1.ServiceTypeExternalName
	headless := spec.Type == corev1.ServiceTypeClusterIP && spec.ClusterIP == corev1.ClusterIPNone
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
	return append(warnings, serviceAddressWarnings(svc)...)
}

// serviceAddressWarnings find addresses in a form that upstream means to refuse; those that others may claim too are refused here.
func serviceAddressWarnings(svc *corev1.Service) (warnings []string) {
	at := field.NewPath("spec")
	if _, err := netip.ParseAddr(svc.Spec.LoadBalancerIP); err == nil {
		warnings = utilvalidation.GetWarningsForIP(at.Child("loadBalancerIP"), svc.Spec.LoadBalancerIP)
	}
	for i, network := range svc.Spec.LoadBalancerSourceRanges {
		warnings = append(warnings, utilvalidation.GetWarningsForCIDR(at.Child("loadBalancerSourceRanges").Index(i), network)...)
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
