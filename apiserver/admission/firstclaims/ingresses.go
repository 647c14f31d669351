package firstclaims

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// ingressController is that of the IngressClasses that are served here.
	ingressController = "setpoint.io/ingress"
	// classAnnotation names the class of an Ingress that has none in its spec.
	classAnnotation = "kubernetes.io/ingress.class"
)

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
		all = append(all, claim{thing{ofIngresses: "the default backend"}, spec.Child("defaultBackend"), i.Spec.DefaultBackend.String()})
	}
	for n, rule := range i.Spec.Rules {
		of := "the host of requests without one"
		if rule.Host != "" {
			of = fmt.Sprintf("host %q", strings.ToLower(rule.Host))
		}
		all = append(all, claim{thing{ofIngresses: of}, spec.Child("rules").Index(n).Child("host"), rule.Host})
	}
	return all
}

// olderIngress is the order in which Ingresses that claim one host are served.
func olderIngress(a, b *networkingv1.Ingress) int {
	return cmp.Or(cmp.Compare(a.CreationTimestamp.Unix(), b.CreationTimestamp.Unix()),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
