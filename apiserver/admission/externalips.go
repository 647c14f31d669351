package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/admission"
)

// Words of ExternalIPs.
const (
	nobody    = "none"
	everybody = "all"
)

var (
	errExternalIPs = errors.New("--service-external-ips wants 'none', 'all' or names of namespaces")
	errNoExternal  = errors.New("Use of external IPs is denied by admission control: " + //nolint:staticcheck // upstream's words
		"--service-external-ips of the servers says in which namespaces it is allowed")
)

// ExternalIPs are the namespaces whose Services may have externalIPs, or "all" or "none" alone; empty is "none".
type ExternalIPs []string

// Validate says what is wrong with the flag.
func (e ExternalIPs) Validate() error {
	for _, name := range e {
		word := name == nobody || name == everybody
		if word && len(e) > 1 || !word && len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("%w: %q", errExternalIPs, e)
		}
	}
	return nil
}

func (e ExternalIPs) allow(namespace string) bool {
	return slices.Equal(e, ExternalIPs{everybody}) || slices.Contains(e, namespace) && namespace != nobody
}

// denyServiceExternalIPs is upstream's plugin: an external address takes what the nodes send to it, whoever has it, so nobody adds one
// where that is not allowed. Those that a Service has may stay.
type denyServiceExternalIPs struct{ allowed ExternalIPs }

// Handles implements admission.Interface.
func (denyServiceExternalIPs) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (d denyServiceExternalIPs) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	service, ok := a.GetObject().(*corev1.Service)
	if !ok || a.GetSubresource() != "" || d.allowed.allow(a.GetNamespace()) {
		return nil
	}
	var had []string
	if old, ok := a.GetOldObject().(*corev1.Service); ok {
		had = old.Spec.ExternalIPs
	}
	for _, ip := range service.Spec.ExternalIPs {
		if !slices.Contains(had, ip) {
			return admission.NewForbidden(a, errNoExternal)
		}
	}
	return nil
}
