package networking

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// hostCellMax is how many hosts a table cell names.
const hostCellMax = 3

func ingresses() resource.Kind[*networkingv1.Ingress] {
	return resource.Kind[*networkingv1.Ingress]{
		GroupVersionKind: networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		Plural:           "ingresses",
		ShortNames:       []string{"ing"},
		New:              func() *networkingv1.Ingress { return &networkingv1.Ingress{} },
		NewList:          func() runtime.Object { return &networkingv1.IngressList{} },
		Validate:         validateNewIngress,
		ValidateUpdate:   validateIngressUpdate,
		ValidateStatus:   validateIngressStatus,
		Warnings:         ingressWarnings,
		StatusWarnings:   ingressStatusWarnings,
		Spec:             func(ingress *networkingv1.Ingress) any { return &ingress.Spec },
		Status:           func(ingress *networkingv1.Ingress) any { return &ingress.Status },
		Generation:       true,
		Columns:          ingressColumns(),
	}
}

// ingressWarnings tells the writer of a new object of the annotation that the class
// has replaced; a stored object has a version.
func ingressWarnings(ingress *networkingv1.Ingress) []string {
	if _, annotated := ingress.Annotations[classAnnotation]; !annotated || ingress.Spec.IngressClassName != nil ||
		ingress.ResourceVersion != "" {
		return nil
	}
	return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", classAnnotation)}
}

func ingressStatusWarnings(ingress *networkingv1.Ingress) (warnings []string) {
	for i, address := range ingress.Status.LoadBalancer.Ingress {
		if address.IP != "" {
			warnings = append(warnings, utilvalidation.GetWarningsForIP(field.NewPath("status", "loadBalancer", "ingress").Index(i), address.IP)...)
		}
	}
	return warnings
}

func ingressColumns() []resource.Column[*networkingv1.Ingress] {
	return []resource.Column[*networkingv1.Ingress]{
		column.Name[*networkingv1.Ingress](),
		column.Text(
			"Class",
			"The name of the IngressClass resource that should be used for additional configuration",
			0,
			func(ingress *networkingv1.Ingress) string {
				if class := ingress.Spec.IngressClassName; class != nil {
					return *class
				}
				return column.None
			},
		),
		column.Text("Hosts", "Hosts that incoming requests are matched against before the ingress rule", 0, hostsCell),
		column.Text("Address", "Address is a list containing ingress points for the load-balancer", 0, addressCell),
		column.Text("Ports", "Ports of TLS configurations that open", 0, func(ingress *networkingv1.Ingress) string {
			if len(ingress.Spec.TLS) > 0 {
				return "80, 443"
			}
			return "80"
		}),
		column.Age[*networkingv1.Ingress](),
	}
}

// hostsCell names the first hosts; a star is any host.
func hostsCell(ingress *networkingv1.Ingress) string {
	var hosts []string
	more := false
	for i := range ingress.Spec.Rules {
		more = more || len(hosts) == hostCellMax
		if host := ingress.Spec.Rules[i].Host; host != "" && !more {
			hosts = append(hosts, host)
		}
	}
	switch {
	case len(hosts) == 0:
		return "*"
	case more:
		return fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(ingress.Spec.Rules)-hostCellMax)
	}
	return strings.Join(hosts, ",")
}

func addressCell(ingress *networkingv1.Ingress) string {
	var addresses []string
	for _, point := range ingress.Status.LoadBalancer.Ingress {
		address := point.IP
		if address == "" {
			address = point.Hostname
		}
		if address != "" {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return strings.Join(slices.Compact(addresses), ",")
}
