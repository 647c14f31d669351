package podwarnings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// listWarnings find entries that strategic merge would join, and pull secrets without a name.
func listWarnings(spec *corev1.PodSpec, at *field.Path) (warnings []string) {
	addresses, secrets := sets.New[string](), sets.New[string]()
	for i, alias := range spec.HostAliases {
		if addresses.Has(alias.IP) {
			warnings = append(warnings, fmt.Sprintf("%s: duplicate ip %q", at.Child("hostAliases").Index(i).Child("ip"), alias.IP))
		}
		addresses.Insert(alias.IP)
	}
	for i, secret := range spec.ImagePullSecrets {
		if secrets.Has(secret.Name) {
			warnings = append(warnings, fmt.Sprintf("%s: duplicate name %q", at.Child("imagePullSecrets").Index(i).Child("name"), secret.Name))
		}
		secrets.Insert(secret.Name)
	}
	for i, secret := range spec.ImagePullSecrets {
		if secret.Name == "" {
			warnings = append(warnings, fmt.Sprintf("%s: invalid empty name %q", at.Child("imagePullSecrets").Index(i).Child("name"), secret.Name))
		}
	}
	return warnings
}

// addressWarnings find IP addresses in a form that upstream means to refuse.
func addressWarnings(spec *corev1.PodSpec, at *field.Path) (warnings []string) {
	if spec.DNSConfig != nil {
		for i, server := range spec.DNSConfig.Nameservers {
			warnings = append(warnings, validation.GetWarningsForIP(at.Child("dnsConfig", "nameservers").Index(i), server)...)
		}
	}
	for i, alias := range spec.HostAliases {
		warnings = append(warnings, validation.GetWarningsForIP(at.Child("hostAliases").Index(i).Child("ip"), alias.IP)...)
	}
	return warnings
}
