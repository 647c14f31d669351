package core

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// endpointsCellMax is how many addresses a table cell names.
const endpointsCellMax = 3

func endpoints() resource.Kind[*corev1.Endpoints] {
	return resource.Kind[*corev1.Endpoints]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Endpoints"),
		Plural:           "endpoints",
		ShortNames:       []string{"ep"},
		New:              func() *corev1.Endpoints { return &corev1.Endpoints{} },
		NewList:          func() runtime.Object { return &corev1.EndpointsList{} },
		Default:          defaultEndpoints,
		Validate:         func(e *corev1.Endpoints) field.ErrorList { return validateSubsets(e.Subsets, field.NewPath("subsets")) },
		ValidateUpdate:   validateEndpointsUpdate,
		Warnings: func(*corev1.Endpoints) []string {
			return []string{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}
		},
		AllowCreateOnUpdate: true,
		Columns: []resource.Column[*corev1.Endpoints]{
			column.Name[*corev1.Endpoints](),
			column.Text("Endpoints", corev1.Endpoints{}.SwaggerDoc()["subsets"], 0, endpointsCell),
			column.Age[*corev1.Endpoints](),
		},
	}
}

func defaultEndpoints(e *corev1.Endpoints) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			rule.Default(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

// endpointsCell names the first addresses with each of their ports.
func endpointsCell(e *corev1.Endpoints) string {
	if len(e.Subsets) == 0 {
		return column.None
	}
	var all []string
	for i := range e.Subsets {
		subset := &e.Subsets[i]
		if len(subset.Ports) == 0 {
			for _, address := range subset.Addresses {
				all = append(all, address.IP)
			}
		}
		for _, port := range subset.Ports {
			for _, address := range subset.Addresses {
				all = append(all, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
			}
		}
	}
	if len(all) <= endpointsCellMax {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:endpointsCellMax], ","), len(all)-endpointsCellMax)
}

// validateEndpointsUpdate: what an older version accepted may stay as it is.
func validateEndpointsUpdate(e, old *corev1.Endpoints) field.ErrorList {
	errs := validateSubsets(e.Subsets, field.NewPath("subsets"))
	if len(errs) > 0 && equality.Semantic.DeepEqual(e.Subsets, old.Subsets) {
		return nil
	}
	return errs
}

func validateSubsets(subsets []corev1.EndpointSubset, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range subsets {
		subset, at := &subsets[i], path.Index(i)
		if len(subset.Addresses) == 0 && len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range subset.Addresses {
			errs = append(errs, validateSubsetAddress(&subset.Addresses[j], at.Child("addresses").Index(j))...)
		}
		for j := range subset.NotReadyAddresses {
			errs = append(errs, validateSubsetAddress(&subset.NotReadyAddresses[j], at.Child("notReadyAddresses").Index(j))...)
		}
		for j := range subset.Ports {
			errs = append(errs, validateSubsetPort(&subset.Ports[j], len(subset.Ports) > 1, at.Child("ports").Index(j))...)
		}
	}
	return errs
}

func validateSubsetAddress(address *corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := rule.IP(address.IP, path.Child("ip"))
	if address.Hostname != "" {
		errs = append(errs, rule.Label(address.Hostname, path.Child("hostname"))...)
	}
	if address.NodeName != nil {
		errs = append(errs, rule.Subdomain(*address.NodeName, path.Child("nodeName"))...)
	}
	return append(errs, rule.NonSpecialIP(address.IP, path.Child("ip"))...)
}

func validateSubsetPort(port *corev1.EndpointPort, named bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case port.Name != "":
		errs = append(errs, rule.Label(port.Name, path.Child("name"))...)
	case named:
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	errs = append(errs, rule.Port(port.Port, path.Child("port"))...)
	errs = append(errs, rule.Protocol(port.Protocol, path.Child("protocol"))...)
	if port.AppProtocol != nil {
		errs = append(errs, rule.QualifiedName(*port.AppProtocol, path.Child("appProtocol"))...)
	}
	return errs
}
