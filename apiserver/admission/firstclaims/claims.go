package firstclaims

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// balancerClass is that of Services which get addresses here, beside those that name none.
	balancerClass = "setpoint.io/load-balancer"
	// ingressController is that of the IngressClasses that are served here.
	ingressController = "setpoint.io/ingress"
	// classAnnotation names the class of an Ingress that has none in its spec.
	classAnnotation = "kubernetes.io/ingress.class"
)

// claim is one thing that an object claims.
type claim struct {
	// of is the same for all that claim the same, and what people read.
	of    string
	path  *field.Path
	value any
}

// newOf are the claims that were not there before.
func newOf(now, old []claim) []claim {
	return slices.DeleteFunc(now, func(c claim) bool {
		return slices.ContainsFunc(old, func(o claim) bool { return o.of == c.of })
	})
}

// claimsOfService are its ports at the nodes, if it is a load balancer there, and at its external addresses.
func (p Plugin) claimsOfService(s *corev1.Service) (all []claim) {
	spec := field.NewPath("spec")
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	class := s.Spec.LoadBalancerClass
	atNodes := p.AtNodes && s.Spec.Type == corev1.ServiceTypeLoadBalancer && (class == nil || *class == balancerClass)
	for i, port := range s.Spec.Ports {
		if atNodes {
			of := fmt.Sprintf("port %d/%s of the nodes", port.Port, port.Protocol)
			all = append(all, claim{of, spec.Child("ports").Index(i).Child("port"), port.Port})
		}
		for j, ip := range s.Spec.ExternalIPs {
			of := fmt.Sprintf("port %d/%s of %s", port.Port, port.Protocol, ip)
			all = append(all, claim{of, spec.Child("externalIPs").Index(j), ip})
		}
	}
	return all
}

// claimsOfIngress are the hosts of an Ingress that is served here, and what no rule is for.
func claimsOfIngress(i *networkingv1.Ingress, classes []*networkingv1.IngressClass) (all []claim) {
	class := i.Annotations[classAnnotation]
	if i.Spec.IngressClassName != nil {
		class = *i.Spec.IngressClassName
	}
	if !slices.ContainsFunc(classes, func(c *networkingv1.IngressClass) bool {
		return c.Name == class && c.Spec.Controller == ingressController
	}) {
		return nil
	}
	spec := field.NewPath("spec")
	if i.Spec.DefaultBackend != nil {
		all = append(all, claim{"the default backend", spec.Child("defaultBackend"), i.Spec.DefaultBackend.String()})
	}
	for n, rule := range i.Spec.Rules {
		of := "the host of requests without one"
		if rule.Host != "" {
			of = fmt.Sprintf("host %q", strings.ToLower(rule.Host))
		}
		all = append(all, claim{of, spec.Child("rules").Index(n).Child("host"), rule.Host})
	}
	return all
}
